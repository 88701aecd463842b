// What ThreadSanitizer must know about oneTBB, whose library is not instrumented: nothing in other
// builds.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define MILLRACE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MILLRACE_THREAD_SANITIZER 1
#endif
#endif

#ifdef MILLRACE_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#include <tbb/task_scheduler_observer.h>

extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace millrace {

#ifdef MILLRACE_THREAD_SANITIZER

/// From begin to end, this thread's memory accesses are the scheduler's, not ours.
inline void scheduler_begin() {
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}
inline void scheduler_end() {
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

/// Marks a worker's memory accesses as the scheduler's from its first loop to its last moment.
struct WorkerMark {
  bool on = false;
  ~WorkerMark() {
    if (on) scheduler_end();
  }
};
inline thread_local WorkerMark worker_mark;

/// Sees the workers that enter the arena of the thread that made it.
class WorkerObserver : public tbb::task_scheduler_observer {
 public:
  WorkerObserver() { observe(true); }
  ~WorkerObserver() override { observe(false); }
  void on_scheduler_entry(bool is_worker) override {
    if (!is_worker || worker_mark.on) return;
    scheduler_begin();
    worker_mark.on = true;
  }
};

/// Stands around a parallel loop: what came before it is seen by the bodies, what they did by what
/// follows.
class LoopScope {
 public:
  LoopScope() {
    __tsan_release(&begin_);
    scheduler_begin();
  }
  ~LoopScope() {
    scheduler_end();
    __tsan_acquire(&end_);
  }

  /// Stands around one body of the loop.
  class Body {
   public:
    explicit Body(LoopScope& loop) : loop_(loop) {
      scheduler_end();
      __tsan_acquire(&loop_.begin_);
    }
    ~Body() {
      __tsan_release(&loop_.end_);
      scheduler_begin();
    }

   private:
    LoopScope& loop_;
  };

 private:
  char begin_ = 0, end_ = 0;
  WorkerObserver observer_;
};

#else

struct LoopScope {
  struct Body {
    explicit Body(LoopScope&) {}
  };
};

#endif

}  // namespace millrace
