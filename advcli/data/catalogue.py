"""The data sets of the papers that a folder of data can hold, whether or not they are here.

Counts, citations and addresses are those of the data folder's manifest; sizes are printed in fathony2018, Tables 1 and 3.
``content`` is `advcli.data.table.table_sha256` of the set: it recognises the data however they were written or packed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Upstream:
    """Public files of a data set at a pinned commit, and how to read them.

    Attributes
    ----------
    repository, commit : str
        GitHub repository and commit.
    paths : tuple of str
        Files: one, or the official train and test part in this order.
    format : str
        ``csv`` (a first line with text among the features is a heading), ``whitespace`` or ``arff``; the target comes last.
    columns : sequence of str
        Names of the features.
    """

    repository: str
    commit: str
    paths: tuple[str, ...]
    format: str
    columns: Sequence[str]

    def urls(self) -> list[str]:
        """Return the addresses of the files."""
        return [f"https://raw.githubusercontent.com/{self.repository}/{self.commit}/{path}" for path in self.paths]


@dataclass(frozen=True)
class Known:
    """A data set of the papers.

    Attributes
    ----------
    name : str
        Name, as in the manifest and in ``conf/dataset``.
    rows, features, classes : int (classes: or None)
        Size of the stored table; classes is None for continuous targets.
    task : str
        ``multiclass``, ``ordinal`` or ``regression_to_ordinal``.
    content : str
        Canonical checksum of the table.
    citation : str
        Where the data come from.
    sizes : (int, int) or None
        Printed sizes of the random train and test parts.
    tables : str
        Where the papers use it.
    n_classes : int or None
        Printed number of classes of a continuous target.
    cut : str
        How that target is cut; the papers do not say, this is what gives their errors.
    printed_classes : int or None
        Printed number of classes where it differs from the classes that occur.
    categorical : tuple of str
        Text columns to one-hot encode.
    allow_small_classes : bool
        It has classes with fewer rows than the usual five folds.
    upstream : Upstream or None
        Public files, where their address and format are certain.
    """

    name: str
    rows: int
    features: int
    classes: int | None
    task: str
    content: str
    citation: str
    sizes: tuple[int, int] | None = None
    tables: str = ""
    n_classes: int | None = None
    cut: str = "equal_width"
    printed_classes: int | None = None
    categorical: tuple[str, ...] = ()
    allow_small_classes: bool = False
    upstream: Upstream | None = None

    def options(self) -> dict[str, Any]:
        """Return the options of its YAML file where they differ from the defaults of the source."""
        options: dict[str, Any] = {"ordered": self.task != "multiclass"}
        if self.sizes is not None:
            options["sizes"] = list(self.sizes)
        if self.n_classes is not None:
            options.update(cut=self.cut, n_classes=self.n_classes)
        if self.categorical:
            options["categorical"] = list(self.categorical)
        if self.allow_small_classes:
            options["allow_small_classes"] = True
        return options


_SETS = (
    Known(
        name="iris",
        rows=150,
        features=4,
        classes=3,
        task="multiclass",
        content="b04a8e4bc44fd896392cd72f9e0fb0ba564a2e3cc1c18b90a2041209d55377e6",
        citation="Fisher (1936), Annals of Eugenics 7; UCI Machine Learning Repository: Iris",
        sizes=(105, 45),
        tables="fathony2018 Table 1",
        upstream=Upstream(
            "jbrownlee/Datasets",
            "d20fcb6402ae34e653d4513b00f39257bb37ed7f",
            ("iris.csv",),
            "csv",
            ["sepal_length", "sepal_width", "petal_length", "petal_width"],
        ),
    ),
    Known(
        name="glass",
        rows=214,
        features=9,
        classes=6,
        task="multiclass",
        content="d73ae02e234186e6efd48977bcb5e3fdf9662c2bb493c66fb39751a55446c078",
        citation="German, B. (1987); UCI Machine Learning Repository: Glass Identification",
        sizes=(149, 65),
        tables="fathony2018 Table 1",
        upstream=Upstream(
            "jbrownlee/Datasets",
            "d20fcb6402ae34e653d4513b00f39257bb37ed7f",
            ("glass.csv",),
            "csv",
            ["RI", "Na", "Mg", "Al", "Si", "K", "Ca", "Ba", "Fe"],
        ),
    ),
    Known(
        name="redwine",
        rows=1599,
        features=11,
        classes=6,
        task="multiclass",
        content="499cd3825f6a42c4e4c8bd814424983888938f7174657777e9839dc3c8ff0828",
        citation=("Cortez et al. (2009), Decision Support Systems 47(4):547-553; UCI Machine Learning Repository: Wine Quality"),
        sizes=(1119, 480),
        tables="fathony2018 Table 1",
        printed_classes=10,
        upstream=Upstream(
            "jbrownlee/Datasets",
            "d20fcb6402ae34e653d4513b00f39257bb37ed7f",
            ("winequality-red.csv",),
            "csv",
            [
                "fixed_acidity",
                "volatile_acidity",
                "citric_acid",
                "residual_sugar",
                "chlorides",
                "free_sulfur_dioxide",
                "total_sulfur_dioxide",
                "density",
                "pH",
                "sulphates",
                "alcohol",
            ],
        ),
    ),
    Known(
        name="ecoli",
        rows=336,
        features=7,
        classes=8,
        task="multiclass",
        content="674a578a67890777c249fc41587ac5dc79f9a9cac3dc95e973265995d99d87af",
        citation="Horton & Nakai (1996), ISMB; UCI Machine Learning Repository: Ecoli",
        sizes=(235, 101),
        tables="fathony2018 Table 1",
        allow_small_classes=True,
        upstream=Upstream(
            "jbrownlee/Datasets",
            "d20fcb6402ae34e653d4513b00f39257bb37ed7f",
            ("ecoli.csv",),
            "csv",
            ["mcg", "gvh", "lip", "chg", "aac", "alm1", "alm2"],
        ),
    ),
    Known(
        name="vehicle",
        rows=846,
        features=18,
        classes=4,
        task="multiclass",
        content="c061c547ac68305da1744636684193a7131e79e85b4c61721c595c9ec0dd2941",
        citation="Siebert (1987), Turing Institute; UCI Machine Learning Repository: Statlog (Vehicle Silhouettes)",
        sizes=(592, 254),
        tables="fathony2018 Table 1",
        upstream=Upstream(
            "renatopp/arff-datasets",
            "c59f172882592bb58982cc54d2d3c8a2b57e9b73",
            ("classification/vehicle.arff",),
            "arff",
            [
                "COMPACTNESS",
                "CIRCULARITY",
                "DISTANCE_CIRCULARITY",
                "RADIUS_RATIO",
                "PR.AXIS_ASPECT_RATIO",
                "MAX.LENGTH_ASPECT_RATIO",
                "SCATTER_RATIO",
                "ELONGATEDNESS",
                "PR.AXIS_RECTANGULARITY",
                "MAX.LENGTH_RECTANGULARITY",
                "SCALED_VARIANCE_MAJOR",
                "SCALED_VARIANCE_MINOR",
                "SCALED_RADIUS_OF_GYRATION",
                "SKEWNESS_ABOUT_MAJOR",
                "SKEWNESS_ABOUT_MINOR",
                "KURTOSIS_ABOUT_MAJOR",
                "KURTOSIS_ABOUT_MINOR",
                "HOLLOWS_RATIO",
            ],
        ),
    ),
    Known(
        name="segment",
        rows=2310,
        features=19,
        classes=7,
        task="multiclass",
        content="6a8026400f6c9a76b7f670b34d2ecef3c700a93c54ea520068b7b032da1b86ef",
        citation=("Vision Group, Univ. of Massachusetts (1990); UCI Machine Learning Repository: Image Segmentation / Statlog segment"),
        sizes=(1617, 693),
        tables="fathony2018 Table 1",
        upstream=Upstream(
            "renatopp/arff-datasets",
            "c59f172882592bb58982cc54d2d3c8a2b57e9b73",
            ("classification/segment.arff",),
            "arff",
            [
                "region-centroid-col",
                "region-centroid-row",
                "region-pixel-count",
                "short-line-density-5",
                "short-line-density-2",
                "vedge-mean",
                "vegde-sd",
                "hedge-mean",
                "hedge-sd",
                "intensity-mean",
                "rawred-mean",
                "rawblue-mean",
                "rawgreen-mean",
                "exred-mean",
                "exblue-mean",
                "exgreen-mean",
                "value-mean",
                "saturation-mean",
                "hue-mean",
            ],
        ),
    ),
    Known(
        name="sat",
        rows=6435,
        features=36,
        classes=6,
        task="multiclass",
        content="1e8b21c1043fb5fb3475a97bc495027e3522527684b476bd543d40e16dc00dde",
        citation="Srinivasan, A.; UCI Machine Learning Repository: Statlog (Landsat Satellite)",
        sizes=(4435, 2000),
        tables="fathony2018 Table 1",
        printed_classes=7,
        upstream=Upstream(
            "YannisSch/Statlog_Landstat_Satellite_Project",
            "6f31538326e860b63b09efdb43a0f76f3973ce29",
            (
                "data/sat.trn",
                "data/sat.tst",
            ),
            "whitespace",
            [f"pixel{p}_band{b}" for p in range(1, 10) for b in range(1, 5)],
        ),
    ),
    Known(
        name="optdigits",
        rows=5620,
        features=64,
        classes=10,
        task="multiclass",
        content="47c95a9231ee57f8ef52c4138ee7d67e8bc71e1549693ca38310aabd0018f608",
        citation="Alpaydin & Kaynak (1998); UCI Machine Learning Repository: Optical Recognition of Handwritten Digits",
        sizes=(3823, 1797),
        tables="fathony2018 Table 1",
        upstream=Upstream(
            "prachispanse/Machine-Learning-Projects",
            "27948bf8e5866686f78863d671f50c414c93f211",
            (
                "optdigits.tra",
                "optdigits.tes",
            ),
            "csv",
            [f"input{i}" for i in range(1, 65)],
        ),
    ),
    Known(
        name="pageblocks",
        rows=5473,
        features=10,
        classes=5,
        task="multiclass",
        content="402415d1556e886bc1e580cb7db0ba41c556df2c347f4bdfb68a82863c47ca67",
        citation="Malerba (1994); UCI Machine Learning Repository: Page Blocks Classification",
        sizes=(3831, 1642),
        tables="fathony2018 Table 1",
        upstream=Upstream(
            "renatopp/arff-datasets",
            "c59f172882592bb58982cc54d2d3c8a2b57e9b73",
            ("classification/page.blocks.arff",),
            "arff",
            ["height", "length", "area", "eccen", "p_black", "p_and", "mean_tr", "blackpix", "blackand", "wb_trans"],
        ),
    ),
    Known(
        name="libras",
        rows=360,
        features=90,
        classes=15,
        task="multiclass",
        content="ce7d5f20e0fd6711107ab2438b8c1598588c0167ac4bcea61954a19e68bacc8a",
        citation="Dias, Peres & Biscaro (2009); UCI Machine Learning Repository: Libras Movement",
        sizes=(252, 108),
        tables="fathony2018 Table 1",
        upstream=Upstream(
            "anton-patrushev/statistical-hypotheses",
            "532afb778a12634feaa4c5989b9cff3838576072",
            ("data/movement_libras.data",),
            "csv",
            [f"{axis}coord{i}" for i in range(1, 46) for axis in "xy"],
        ),
    ),
    Known(
        name="vertebral",
        rows=310,
        features=6,
        classes=3,
        task="multiclass",
        content="045e45288eeb41819989b6729eaa8ae3919e77ce61f2be4ac85020ef87210516",
        citation="Barreto & Neto (2011); UCI Machine Learning Repository: Vertebral Column",
        sizes=(217, 93),
        tables="fathony2018 Table 1",
        upstream=Upstream(
            "renatopp/arff-datasets",
            "c59f172882592bb58982cc54d2d3c8a2b57e9b73",
            ("classification/column3C.arff",),
            "arff",
            [
                "pelvic_incidence",
                "pelvic_tilt",
                "lumbar_lordosis_angle",
                "sacral_slope",
                "pelvic_radius",
                "degree_spondylolisthesis",
            ],
        ),
    ),
    Known(
        name="breasttissue",
        rows=106,
        features=9,
        classes=6,
        task="multiclass",
        content="30cd93c01674c05c90025aea7a5efa7f29f1bb00dd297c875f7c4be2043cf113",
        citation="Marques de Sa & Jossinet (2010); UCI Machine Learning Repository: Breast Tissue",
        sizes=(74, 32),
        tables="fathony2018 Table 1",
        upstream=Upstream(
            "kwambiee/Sample-Datasets",
            "7220174ed4cf12a5ebe6d9651b695ba41628ac66",
            ("BreastTissue.csv",),
            "csv",
            ["I0", "PA500", "HFS", "DA", "Area", "A/DA", "Max_IP", "DR", "P"],
        ),
    ),
    Known(
        name="letter",
        rows=20000,
        features=16,
        classes=26,
        task="multiclass",
        content="7663465969681745face978f2873a9057dc54f3a6f337909ca196733c4a5da5a",
        citation="Slate (1991), Frey & Slate, Machine Learning 6(2); UCI Machine Learning Repository: Letter Recognition",
    ),
    Known(
        name="diabetes",
        rows=43,
        features=2,
        classes=None,
        task="regression_to_ordinal",
        content="bada33aab7f43dae0654d7dfd604c1281d36a442109c07dfe78335b07af0cf5c",
        citation=(
            "Hastie & Tibshirani (1990), Generalized Additive Models; L. Torgo regression data sets (diabetes); "
            "Chu & Ghahramani (2005) JMLR 6"
        ),
        sizes=(30, 13),
        tables="fathony2018 Table 3",
        n_classes=5,
        allow_small_classes=True,
        upstream=Upstream(
            "renatopp/arff-datasets",
            "c59f172882592bb58982cc54d2d3c8a2b57e9b73",
            ("regression/diabetes.numeric.arff",),
            "arff",
            ["age", "deficit"],
        ),
    ),
    Known(
        name="pyrimidines",
        rows=74,
        features=27,
        classes=None,
        task="regression_to_ordinal",
        content="032afaf1b9f994655ced7c39b2d169bafe596e0d5ce01b67d03b6d89929cc61e",
        citation=("King et al. (1992), pyrimidine QSAR; L. Torgo regression data sets (pyrimidines); Chu & Ghahramani (2005) JMLR 6"),
        sizes=(51, 23),
        tables="fathony2018 Table 3",
        n_classes=5,
        allow_small_classes=True,
    ),
    Known(
        name="triazines",
        rows=186,
        features=60,
        classes=None,
        task="regression_to_ordinal",
        content="f14330739278202bbc5a708253940058dd50363c9dc7fd7ea98b9f0f35394ed3",
        citation=(
            "King et al. / Hirst et al. (1994), triazine QSAR; L. Torgo regression data sets (triazines); Chu & Ghahramani (2005) JMLR 6"
        ),
        sizes=(130, 56),
        tables="fathony2018 Table 3",
        n_classes=5,
        allow_small_classes=True,
    ),
    Known(
        name="wisconsin",
        rows=194,
        features=32,
        classes=None,
        task="regression_to_ordinal",
        content="ab073802672a9d5aed017685c4041f17a91b9725d1970fa9a8b3dc05324b14bd",
        citation=(
            "Wolberg, Street & Mangasarian (1995), UCI Machine Learning Repository: Breast Cancer Wisconsin "
            "(Prognostic); L. Torgo regression data sets; Chu & Ghahramani (2005) JMLR 6"
        ),
        sizes=(135, 59),
        tables="fathony2018 Table 3",
        n_classes=5,
        allow_small_classes=True,
    ),
    Known(
        name="machinecpu",
        rows=209,
        features=6,
        classes=None,
        task="regression_to_ordinal",
        content="1ba15a319b15f728b431dadbb2c3d31ff11f18352a62fe3c4e5c03f2d58d8e47",
        citation=("Ein-Dor & Feldmesser (1987), CACM; UCI Machine Learning Repository: Computer Hardware; Chu & Ghahramani (2005) JMLR 6"),
        sizes=(146, 63),
        tables="fathony2018 Table 3",
        n_classes=10,
        allow_small_classes=True,
        upstream=Upstream(
            "renatopp/arff-datasets",
            "c59f172882592bb58982cc54d2d3c8a2b57e9b73",
            ("regression/machine.cpu.arff",),
            "arff",
            ["MYCT", "MMIN", "MMAX", "CACH", "CHMIN", "CHMAX"],
        ),
    ),
    Known(
        name="autompg",
        rows=392,
        features=7,
        classes=None,
        task="regression_to_ordinal",
        content="dbb7d311c5e045df9bdb5f1749c31117bb7027987e2033f7b6dabeb266be39e1",
        citation="Quinlan (1993); UCI Machine Learning Repository: Auto MPG; Chu & Ghahramani (2005) JMLR 6",
        sizes=(274, 118),
        tables="fathony2018 Table 3",
        n_classes=10,
        allow_small_classes=True,
        upstream=Upstream(
            "renatopp/arff-datasets",
            "c59f172882592bb58982cc54d2d3c8a2b57e9b73",
            ("regression/autompg.arff",),
            "arff",
            ["cylinders", "displacement", "horsepower", "weight", "acceleration", "model", "origin"],
        ),
    ),
    Known(
        name="boston",
        rows=506,
        features=13,
        classes=None,
        task="regression_to_ordinal",
        content="8898f35490e93c680eee9a3de6e783bcc12952c9cccf5e9a79798560dcea3d3f",
        citation=("Harrison & Rubinfeld (1978), J. Environ. Economics & Management 5; StatLib boston; Chu & Ghahramani (2005) JMLR 6"),
        sizes=(354, 152),
        tables="fathony2018 Table 3",
        n_classes=5,
        allow_small_classes=True,
    ),
    Known(
        name="stocks",
        rows=950,
        features=9,
        classes=None,
        task="regression_to_ordinal",
        content="1ebd492afc53b137afe668cb2ee1be2a294aa1c16d8866c437a6f6b1432e7d15",
        citation=(
            "StatLib stock (daily prices of ten aerospace companies, 1988-1991); L. Torgo regression data sets; "
            "Chu & Ghahramani (2005) JMLR 6"
        ),
        sizes=(665, 285),
        tables="fathony2018 Table 3",
        n_classes=5,
        allow_small_classes=True,
    ),
    Known(
        name="bank",
        rows=8192,
        features=8,
        classes=None,
        task="regression_to_ordinal",
        content="564bc1ba5175908613be7e520f19a0c8115ce3a02364ecf2136910d0b62815bc",
        citation="DELVE, Univ. of Toronto: bank family (bank-8FM); Chu & Ghahramani (2005) JMLR 6",
        sizes=(5734, 2458),
        tables="fathony2018 Table 3",
        n_classes=10,
        cut="equal_frequency",
        allow_small_classes=True,
    ),
    Known(
        name="computer",
        rows=8192,
        features=21,
        classes=None,
        task="regression_to_ordinal",
        content="6dd1c1b0510afdac57d8402abe4be068eadfb74821e63802b6c707077f27ea11",
        citation="DELVE, Univ. of Toronto: comp-activ (cpu_act); Chu & Ghahramani (2005) JMLR 6",
        sizes=(5734, 2458),
        tables="fathony2018 Table 3",
        n_classes=10,
        cut="equal_frequency",
        allow_small_classes=True,
    ),
    Known(
        name="calhousing",
        rows=20640,
        features=8,
        classes=None,
        task="regression_to_ordinal",
        content="fa203cdc2412f8333de70bb03802abd06a819981c4f54e89c4018bd1504eee79",
        citation="Pace & Barry (1997), Statistics & Probability Letters 33; StatLib houses; Chu & Ghahramani (2005) JMLR 6",
        sizes=(14447, 6193),
        tables="fathony2018 Table 3",
        n_classes=10,
        cut="equal_frequency",
        allow_small_classes=True,
    ),
    Known(
        name="abalone",
        rows=4177,
        features=8,
        classes=None,
        task="regression_to_ordinal",
        content="48c5bec28eacf30347902abb865991f60d34a10fc248e7836bbc7ea1b0bcaa85",
        citation="Nash et al. (1994); UCI Machine Learning Repository: Abalone; Chu & Ghahramani (2005) JMLR 6",
        sizes=(2923, 1254),
        tables="fathony2018 Table 3",
        n_classes=10,
        categorical=("Sex",),
        allow_small_classes=True,
        upstream=Upstream(
            "renatopp/arff-datasets",
            "c59f172882592bb58982cc54d2d3c8a2b57e9b73",
            ("regression/abalone.arff",),
            "arff",
            ["Sex", "Length", "Diameter", "Height", "Whole_weight", "Shucked_weight", "Viscera_weight", "Shell_weight"],
        ),
    ),
    Known(
        name="esl",
        rows=488,
        features=4,
        classes=9,
        task="ordinal",
        content="a14e374a683a7375867cf738c9e61bf2e7a4a780b8ce0793727e98dbef83b301",
        citation="Ben-David, A.: Employee Selection (ESL), datasets-arie_ben_david (WEKA collection)",
        allow_small_classes=True,
    ),
    Known(
        name="lev",
        rows=1000,
        features=4,
        classes=5,
        task="ordinal",
        content="f9cd3eb4ade57ecbda097d371cbfe5562afef4c35a83827fa9ded1209f1410e0",
        citation="Ben-David, A.: Lecturers Evaluation (LEV), datasets-arie_ben_david (WEKA collection)",
    ),
    Known(
        name="swd",
        rows=1000,
        features=10,
        classes=4,
        task="ordinal",
        content="8743ca3ee76c09f79c090bcfdfb930572229834545fb9fb18c513859675def3e",
        citation="Ben-David, A.: Social Workers Decisions (SWD), datasets-arie_ben_david (WEKA collection)",
    ),
    Known(
        name="era",
        rows=1000,
        features=4,
        classes=9,
        task="ordinal",
        content="38affb7adfb289ee8b855d95b8f6e66d1e3b939a97bb4e9a94591affa15fd56c",
        citation="Ben-David, A.: Employee Rejection/Acceptance (ERA), datasets-arie_ben_david (WEKA collection)",
    ),
)

CATALOGUE: dict[str, Known] = {known.name: known for known in _SETS}


TEXTS: dict[str, tuple[int, int, tuple[int, int], str]] = {
    "reuters_r8": (
        7674,
        8,
        (5485, 2189),
        "Lewis: Reuters-21578 (ModApte split); Cardoso-Cachopo (2007), 8 classes; texts of Yao, Mao & Luo (2019)",
    ),
}
"""Sets of labelled texts: rows, classes, sizes of the official parts, citation."""


@dataclass(frozen=True)
class Hierarchical:
    """A set whose labels are nodes of a hierarchy.

    Attributes
    ----------
    rows, features, classes : int
        Size of the table; the labels that occur.
    citation : str
        Where the data come from.
    hierarchy : str
        The file of edges beside it.
    label_separator : str or None
        What stands between the labels of a row; None for one label.
    stub_leaves : bool
        Labels that are inner nodes need a leaf of their own.
    missing : str
        What becomes of cells without a value.
    """

    rows: int
    features: int
    classes: int
    citation: str
    hierarchy: str
    label_separator: str | None = None
    stub_leaves: bool = False
    missing: str = "refuse"

    @property
    def task(self) -> str:
        """What is predicted."""
        return "hierarchical" if self.label_separator is None else "hierarchical multi-label"

    def options(self) -> dict[str, Any]:
        """Return the options of its YAML file where they differ from the defaults of the source."""
        own = {"hierarchy": self.hierarchy, "allow_small_classes": True}
        named = {"label_separator": self.label_separator, "stub_leaves": self.stub_leaves, "missing": self.missing}
        return {**own, **named}


_IMCLEF = (
    "Dimitrovski, Kocev, Loskovska & Dzeroski (2008), ImageCLEF 2007 X-ray images; HMC form via Giunchiglia & Lukasiewicz (2020) C-HMCNN"
)

HIERARCHIES: dict[str, Hierarchical] = {
    "imclef07a": Hierarchical(11006, 80, 63, _IMCLEF, "imclef07a.tree.csv.gz"),
    "imclef07d": Hierarchical(11006, 80, 26, _IMCLEF, "imclef07d.tree.csv.gz"),
    "cellcycle_go": Hierarchical(
        3751,
        77,
        4125,
        "Clare (2003); Vens et al. (2008), Machine Learning 73; HMC form via Giunchiglia & Lukasiewicz (2020) C-HMCNN",
        "cellcycle_go.dag.csv.gz",
        label_separator="@",
        stub_leaves=True,
        missing="mean",
    ),
}
"""Sets with a hierarchy over their labels."""
