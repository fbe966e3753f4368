"""Which of x86-64's levels the processor that runs this has, asked of itself: a system's table of it may be of another one, as under emulation."""

cdef extern from *:
    """
    #if defined(__GNUC__) && defined(__x86_64__)
    /* 3 or 4 for x86-64-v3 or v4, as far as compilers have a question for their instructions: processors with these have the rest; else 1 */
    static int adv_processor(void) {
      __builtin_cpu_init();
      if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2")))
        return 1;
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd")
        && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") ? 4 : 3;
    }
    #else
    static int adv_processor(void) { return 1; }
    #endif
    """
    int adv_processor()


def version():
    """Return 4 for x86-64-v4, 3 for v3, and 1 for others and where the compiler cannot ask."""
    return adv_processor()
