// The driver API's types and constants that this backend uses, declared here so that it builds
// without the vendor's toolkit. Names in the comments are the driver's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::cuda {

/// CUresult.
enum class Status : int {
  Ok = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  Deinitialised = 4,
  StubLibrary = 34,
  DeviceUnavailable = 46,
  NoDevice = 100,
  UncorrectableMemory = 214,  // CUDA_ERROR_ECC_UNCORRECTABLE
  UncorrectableLink = 220,
  Contained = 226,
  NotFound = 500,
  NotReady = 600,
  IllegalAddress = 700,
  OutOfResources = 701,
  LaunchTimeout = 702,
  ContextDestroyed = 709,
  Assert = 710,
  HardwareStack = 714,
  LaunchFailed = 719,
  NotSupported = 801,
  Unknown = 999,
};

using DeviceNumber = int;                  // CUdevice
using DevicePointer = unsigned long long;  // CUdeviceptr
// CUcontext, CUmodule, CUfunction, CUstream, CUevent, CUmemoryPool: pointers to what only the
// driver knows.
using Context = struct ContextObject*;
using Module = struct ModuleObject*;
using Function = struct FunctionObject*;
using Stream = struct StreamObject*;
using Event = struct EventObject*;
using MemoryPool = struct MemoryPoolObject*;

/// CUdevice_attribute.
enum class Attribute : int {
  MaxGridX = 5,
  Processors = 16,  // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
  ComputeMajor = 75,
  ComputeMinor = 76,
  MemoryPools = 115,
};

constexpr unsigned kContextBlockingSync = 0x04;     // CU_CTX_SCHED_BLOCKING_SYNC
constexpr unsigned kContextKeepLocalMemory = 0x10;  // CU_CTX_LMEM_RESIZE_TO_MAX
constexpr unsigned kStreamNonBlocking = 0x1;        // CU_STREAM_NON_BLOCKING
constexpr unsigned kEventBlockingSync = 0x1;        // CU_EVENT_BLOCKING_SYNC
constexpr uintptr_t kLaunchEnd = 0;                 // CU_LAUNCH_PARAM_END
constexpr uintptr_t kLaunchBuffer = 1;              // CU_LAUNCH_PARAM_BUFFER_POINTER
constexpr uintptr_t kLaunchBufferSize = 2;          // CU_LAUNCH_PARAM_BUFFER_SIZE

}  // namespace millrace::cuda
