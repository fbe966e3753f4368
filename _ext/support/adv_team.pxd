# Threads that work in step: a barrier, and sums over the threads that are the same bits on each of them.

cdef extern from *:
    """
    #ifndef ADV_TEAM_H
    #define ADV_TEAM_H
    #if defined(_WIN32)
      #include <windows.h>
      #define adv_yield() SwitchToThread()
      #define adv_nap() Sleep(1)
    #else
      #include <sched.h>
      #include <time.h>
      #define adv_yield() sched_yield()
      static inline void adv_nap(void) { struct timespec pause = {0, 20000}; nanosleep(&pause, NULL); }
    #endif
    #if defined(__x86_64__) || defined(__i386__)
      #define adv_pause() __builtin_ia32_pause()
    #else
      #define adv_pause() ((void)0)
    #endif
    #if defined(_MSC_VER) && !defined(__clang__)
      #include <intrin.h>
      #define adv_read(p) ((int)_InterlockedOr((volatile long *)(p), 0))
      #define adv_write(p, value) ((void)_InterlockedExchange((volatile long *)(p), (value)))
      #define adv_count(p) ((int)_InterlockedIncrement((volatile long *)(p)))
    #else
      #define adv_read(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
      #define adv_write(p, value) __atomic_store_n((p), (value), __ATOMIC_RELEASE)
      #define adv_count(p) __atomic_add_fetch((p), 1, __ATOMIC_ACQ_REL)
    #endif
    enum { ADV_PAUSES = 4000, ADV_YIELDS = 64 };
    /* The counts lie on cache lines of their own: all threads read one while they write the other. */
    typedef struct { char before[64]; int arrived; char between[64]; int turn; char after[64]; int left; char last[64]; } adv_barrier;
    /* Return 0 when all `size` threads have come, 1 when one of them has given up. A thread that waits for long yields the core, and sleeps in
       the end: the thread that all wait for may need the core. */
    static inline int adv_wait(adv_barrier *b, int size) {
      int turn = adv_read(&b->turn), pauses = 0;
      if (adv_count(&b->arrived) == size) {
        adv_write(&b->arrived, 0);
        adv_write(&b->turn, turn + 1);
        return adv_read(&b->left);
      }
      while (adv_read(&b->turn) == turn) {
        if (adv_read(&b->left)) return 1;
        if (++pauses < ADV_PAUSES) adv_pause();
        else if (pauses < ADV_PAUSES + ADV_YIELDS) adv_yield();
        else adv_nap();
      }
      return adv_read(&b->left);
    }
    static inline void adv_leave(adv_barrier *b) { adv_write(&b->left, 1); }
    #endif
    """
    ctypedef struct Barrier "adv_barrier":
        pass
    int wait_for_all "adv_wait"(Barrier *b, int size) noexcept nogil
    void leave "adv_leave"(Barrier *b) noexcept nogil
