"""The configuration files, a package so that an installed advcli finds them."""
