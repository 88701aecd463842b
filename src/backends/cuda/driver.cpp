// Opening of the driver library and its errors as text.
#include "backends/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>

namespace millrace::cuda {
namespace {

constexpr const char* kSystemLibrary = "libcuda.so.1";
constexpr const char* kLibraryVariable = "MILLRACE_CUDA_LIBRARY";

template <class FunctionPointer>
bool resolve(void* library, const char* symbol, FunctionPointer* function) {
  *function = reinterpret_cast<FunctionPointer>(dlsym(library, symbol));
  return *function != nullptr;
}

}  // namespace

Result<Driver> Driver::load(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return Error{ErrorCode::Usage, fmt::format("no CUDA driver is installed: {}", dlerror())};
  }
  Driver driver;
  const char* missing = nullptr;
#define MILLRACE_CUDA_FUNCTION(member, symbol, ...) \
  if (!resolve(handle, symbol, &driver.member)) missing = symbol;
#define MILLRACE_CUDA_OPTIONAL(member, symbol, ...) resolve(handle, symbol, &driver.member);
#include "backends/cuda/driver_functions.inc"
#undef MILLRACE_CUDA_FUNCTION
#undef MILLRACE_CUDA_OPTIONAL
  if (missing != nullptr) {
    return Error{ErrorCode::Usage,
                 fmt::format("the CUDA driver {} is too old: it lacks {}", library, missing)};
  }
  const Status status = driver.init(0);
  if (status != Status::Ok) {
    return Error{ErrorCode::Usage,
                 fmt::format("the CUDA driver does not start: {}", driver.text(status))};
  }
  return driver;
}

Result<const Driver*> Driver::open() {
  static std::mutex mutex;
  static std::map<std::string, Result<Driver>> opened;  // by library; failures stay failures
  const char* named = std::getenv(kLibraryVariable);
  const std::string library = named != nullptr && *named != '\0' ? named : kSystemLibrary;
  std::lock_guard lock(mutex);
  auto found = opened.find(library);
  if (found == opened.end()) found = opened.emplace(library, load(library)).first;
  const Result<Driver>& driver = found->second;
  if (!driver.ok()) return driver.error();
  return &driver.value();
}

std::string Driver::text(Status status) const {
  const char* name = nullptr;
  const char* meaning = nullptr;
  get_error_name(status, &name);
  get_error_string(status, &meaning);
  return fmt::format("{} ({}): {}", name != nullptr ? name : "CUDA error", static_cast<int>(status),
                     meaning != nullptr ? meaning : "no description");
}

Error Driver::error(Status status, const std::string& what) const {
  const ErrorCode code = status == Status::OutOfMemory ? ErrorCode::OutOfMemory
                         : is_sticky(status)           ? ErrorCode::DeviceLost
                                                       : ErrorCode::Internal;
  return {code, fmt::format("cuda device: cannot {}: {}", what, text(status))};
}

bool is_sticky(Status status) {
  // 714 to 719 are what kernels can do wrong: stack, instruction, alignment, address space,
  // counter.
  constexpr Status kSticky[] = {Status::Deinitialised,
                                Status::DeviceUnavailable,
                                Status::UncorrectableMemory,
                                Status::UncorrectableLink,
                                Status::Contained,
                                Status::IllegalAddress,
                                Status::LaunchTimeout,
                                Status::ContextDestroyed,
                                Status::Assert,
                                Status::Unknown};
  if (status >= Status::HardwareStack && status <= Status::LaunchFailed) return true;
  return std::find(std::begin(kSticky), std::end(kSticky), status) != std::end(kSticky);
}

}  // namespace millrace::cuda
