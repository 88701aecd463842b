// Opening of a device's context, and what the driver says of its devices.
#include "backends/cuda/context.h"
#include "kernels/gpu_plan.h"

#include <fmt/format.h>

#include <cctype>
#include <fstream>

namespace millrace::cuda {
namespace {

/// ", driver 580.95" where the system says so: the driver library tells its interface's version
/// only.
std::string driver_release() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string word;
  while (file >> word) {
    if (!word.empty() && std::isdigit(static_cast<unsigned char>(word[0])) != 0 &&
        word.find('.') != std::string::npos) {
      return ", driver " + word;
    }
  }
  return "";
}

}  // namespace

Result<DeviceInfo> describe(const Driver& driver, int ordinal) {
  int n_devices = 0;
  MILLRACE_TRY(driver.check(driver.device_get_count(&n_devices), "count the devices"));
  if (ordinal >= n_devices) {
    return Error{ErrorCode::Usage,
                 fmt::format("no device cuda:{}: this machine has {} CUDA device{}", ordinal,
                             n_devices, n_devices == 1 ? "" : "s")};
  }
  DeviceNumber device = 0;
  MILLRACE_TRY(driver.check(driver.device_get(&device, ordinal), "find the device"));
  char name[256] = {};
  size_t bytes = 0;
  int version = 0, major = 0, minor = 0;
  MILLRACE_TRY(driver.check(driver.device_get_name(name, sizeof(name) - 1, device),
                            "read the device's name"));
  MILLRACE_TRY(
      driver.check(driver.device_total_memory(&bytes, device), "read the device's memory"));
  MILLRACE_TRY(driver.check(driver.driver_get_version(&version), "read the driver's version"));
  MILLRACE_TRY(driver.check(driver.device_get_attribute(&major, Attribute::ComputeMajor, device),
                            "read the compute capability"));
  MILLRACE_TRY(driver.check(driver.device_get_attribute(&minor, Attribute::ComputeMinor, device),
                            "read the compute capability"));
  return DeviceInfo{.id = fmt::format("cuda:{}", ordinal),
                    .name = name,
                    .driver = fmt::format("CUDA {}.{}{}, compute {}.{}", version / 1000,
                                          version % 1000 / 10, driver_release(), major, minor),
                    .memory_bytes = bytes,
                    .partial = !gpu_plan_is_complete()};
}

std::vector<DeviceInfo> list_devices_of_driver() {
  std::vector<DeviceInfo> all;
  const auto driver = Driver::open();
  int n_devices = 0;
  if (!driver.ok() || driver.value()->device_get_count(&n_devices) != Status::Ok) return all;
  for (int ordinal = 0; ordinal < n_devices; ++ordinal) {
    auto info = describe(*driver.value(), ordinal);
    if (info.ok()) all.push_back(std::move(info).value());
  }
  return all;
}

Result<std::unique_ptr<CudaContext>> CudaContext::open(const Driver& driver, int ordinal) {
  DeviceNumber device = 0;
  MILLRACE_TRY(driver.check(driver.device_get(&device, ordinal), "find the device"));
  std::unique_ptr<CudaContext> made(new CudaContext(driver, device));
  // Kept local memory spares a stop of the device each time a kernel needs more of it than the one
  // before. A context that another library made keeps its own flags.
  const Status flags =
      driver.primary_context_set_flags(device, kContextBlockingSync | kContextKeepLocalMemory);
  if (is_sticky(flags)) return driver.error(flags, "prepare the device's context");
  MILLRACE_TRY(driver.check(driver.primary_context_retain(&made->context_, device),
                            "open the device's context"));
  made->use();
  MILLRACE_TRY(
      driver.check(driver.stream_create(&made->stream_, kStreamNonBlocking), "create the stream"));
  const bool has_pools =
      driver.memory_allocate_async != nullptr && driver.device_get_memory_pool != nullptr &&
      driver.memory_pool_trim != nullptr && made->attribute(Attribute::MemoryPools) != 0;
  if (has_pools && driver.device_get_memory_pool(&made->memory_pool_, device) != Status::Ok) {
    made->memory_pool_ = nullptr;
  }
  return made;
}

CudaContext::~CudaContext() {
  if (context_ == nullptr) return;
  use();
  if (stream_ != nullptr) driver.stream_destroy(stream_);
  driver.context_set_current(nullptr);
  driver.primary_context_release(device_);
}

int CudaContext::attribute(Attribute attribute) const {
  int value = 0;
  const Status status = driver.device_get_attribute(&value, attribute, device_);
  return status == Status::Ok ? value : 0;
}

}  // namespace millrace::cuda
