// Watchdog: finds a host that waits where no ledger sees it, and says where it stands.
#pragma once

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace millrace::simulated {

class Engine;

/// Watches the thread that makes it, for as long as it lives. If work is queued and that thread
/// asks nothing of the device but poll() for `limit`, it can only be waiting: the program ends with
/// a report of the newest command and of the functions in which the thread stands. A test expects
/// that end (EXPECT_EXIT).
class Watchdog {
 public:
  Watchdog(Engine* engine, std::chrono::milliseconds limit);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch(std::chrono::milliseconds limit);
  std::string report(std::chrono::milliseconds limit);

  Engine* engine_;
  pthread_t host_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace millrace::simulated
