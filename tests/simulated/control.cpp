// Control: the test's calls, under the engine's mutex.
#include "simulated/engine.h"

namespace millrace::simulated {

void Control::set_clock(Clock clock) {
  std::lock_guard lock(engine_->mutex);
  engine_->options.clock = clock;
}

uint64_t Control::run(uint64_t n) {
  std::lock_guard lock(engine_->mutex);
  return engine_->run(n);
}

uint64_t Control::run_all() {
  std::lock_guard lock(engine_->mutex);
  return engine_->run_to(engine_->queued());
}

uint64_t Control::commands_run() const {
  std::lock_guard lock(engine_->mutex);
  return engine_->commands_run();
}

std::vector<std::string> Control::pending() const {
  std::lock_guard lock(engine_->mutex);
  return engine_->pending();
}

void Control::refuse_memory(uint64_t skip, uint64_t times) {
  std::lock_guard lock(engine_->mutex);
  engine_->refuse_memory(skip, times);
}

void Control::fail_kernel(uint64_t skip) {
  std::lock_guard lock(engine_->mutex);
  engine_->fail_kernel(skip);
}

void Control::lose_device(uint64_t skip) {
  std::lock_guard lock(engine_->mutex);
  engine_->lose_device(skip);
}

void Control::replace_kernel(KernelId kernel, kernels::CpuKernel body) {
  std::lock_guard lock(engine_->mutex);
  engine_->replace_kernel(kernel, body);
}

void Control::forget_hazards() {
  std::lock_guard lock(engine_->mutex);
  engine_->forget_hazards = true;
}

std::vector<std::string> Control::problems() const {
  std::lock_guard lock(engine_->mutex);
  return engine_->problems;
}

ClosingReport Control::closing() const {
  std::lock_guard lock(engine_->mutex);
  return engine_->closing;
}

}  // namespace millrace::simulated
