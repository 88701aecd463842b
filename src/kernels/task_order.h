// What ThreadSanitizer is told about tasks: the library that hands them between threads is not
// built with it.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define MILLRACE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MILLRACE_THREAD_SANITIZER 1
#endif
#endif

#ifdef MILLRACE_THREAD_SANITIZER
#include <atomic>
#endif

namespace millrace::kernels {

/// Marks the four places whose order oneTBB guarantees and the sanitizer cannot see: what a caller
/// did before a loop is visible in the loop's bodies, what the bodies did is visible behind it. Two
/// separate variables, so that bodies of one loop stay unordered and their races are still found.
class TaskOrder {
 public:
#ifdef MILLRACE_THREAD_SANITIZER
  static void before_loop() { begun_.fetch_add(1, std::memory_order_release); }
  static void begin_body() { begun_.load(std::memory_order_acquire); }
  static void end_body() { ended_.fetch_add(1, std::memory_order_release); }
  static void after_loop() { ended_.load(std::memory_order_acquire); }

 private:
  static inline std::atomic<int> begun_ = 0;
  static inline std::atomic<int> ended_ = 0;
#else
  static void before_loop() {}
  static void begin_body() {}
  static void end_body() {}
  static void after_loop() {}
#endif
};

}  // namespace millrace::kernels
