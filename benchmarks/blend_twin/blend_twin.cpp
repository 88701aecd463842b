// Times the blend kernels of several CUDA modules in turn on one made frame and compares what they
// give.
//   blend_twin [--gaussians N] [--size W H] [--rounds N] MODULE:FORWARD:BACKWARD:THREADS...
// The first kernels named are what the others are compared with. One JSON line on stdout.
#include <cuda.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "blend_twin/scene.h"
#include "device/argument_block.h"

namespace millrace::blend_twin {
namespace {

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* text = nullptr;
  if (cuGetErrorString(result, &text) != CUDA_SUCCESS) text = "unknown";
  std::fprintf(stderr, "blend_twin: %s: %s\n", what, text);
  std::exit(1);
}
#define CHECK(call) check(call, #call)

CUdeviceptr allocate(size_t bytes) {
  CUdeviceptr address = 0;
  CHECK(cuMemAlloc(&address, bytes));
  CHECK(cuMemsetD8(address, 0xFF, bytes));
  return address;
}
CUdeviceptr upload(const void* data, size_t bytes) {
  const CUdeviceptr address = allocate(bytes);
  CHECK(cuMemcpyHtoD(address, data, bytes));
  return address;
}
template <class T>
CUdeviceptr upload(const std::vector<T>& values) {
  return upload(values.data(), values.size() * sizeof(T));
}
template <class T>
std::vector<T> download(CUdeviceptr address, size_t n) {
  std::vector<T> values(n);
  CHECK(cuMemcpyDtoH(values.data(), address, n * sizeof(T)));
  return values;
}

struct Candidate {
  std::string name;
  CUfunction forward, backward;
  unsigned threads;
  std::vector<float> forward_ms, backward_ms;
  std::vector<float> image, gradients;
};

Candidate load(const std::string& argument) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= argument.size();) {
    const size_t end = std::min(argument.find(':', at), argument.size());
    parts.push_back(argument.substr(at, end - at));
    at = end + 1;
  }
  if (parts.size() != 4) {
    std::fprintf(stderr, "blend_twin: not MODULE:FORWARD:BACKWARD:THREADS: %s\n", argument.c_str());
    std::exit(2);
  }
  std::ifstream file(parts[0], std::ios::binary);
  std::string image{std::istreambuf_iterator<char>(file), {}};
  if (image.empty()) {
    std::fprintf(stderr, "blend_twin: cannot read %s\n", parts[0].c_str());
    std::exit(2);
  }
  Candidate candidate;
  const size_t slash = parts[0].rfind('/');
  candidate.name = parts[0].substr(slash == std::string::npos ? 0 : slash + 1) + ":" + parts[2];
  candidate.threads = static_cast<unsigned>(std::stoul(parts[3]));
  CUmodule module = nullptr;
  CHECK(cuModuleLoadData(&module, image.data()));
  CHECK(cuModuleGetFunction(&candidate.forward, module, parts[1].c_str()));
  CHECK(cuModuleGetFunction(&candidate.backward, module, parts[2].c_str()));
  return candidate;
}

float median(std::vector<float> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// |a - b| / |b| over every stride-th element from `first`; infinite if an element is not finite.
double relative_distance(const std::vector<float>& a, const std::vector<float>& b, size_t first,
                         size_t stride) {
  double difference = 0, size = 0;
  for (size_t i = first; i < a.size(); i += stride) {
    const double d = static_cast<double>(a[i]) - b[i];
    difference += d * d;
    size += static_cast<double>(b[i]) * b[i];
  }
  const double distance = std::sqrt(difference / std::max(size, 1e-30));
  return std::isfinite(distance) ? distance : std::numeric_limits<double>::infinity();
}

struct Launch {
  CUfunction function;
  ArgumentBlock block;
  unsigned threads;
};
float run_ms(Launch& launch, unsigned groups) {
  CUevent begin = nullptr, end = nullptr;
  CHECK(cuEventCreate(&begin, CU_EVENT_DEFAULT));
  CHECK(cuEventCreate(&end, CU_EVENT_DEFAULT));
  launch.block.set_pass(0, groups);
  size_t size = launch.block.bytes().size();
  auto* bytes = const_cast<std::byte*>(launch.block.bytes().data());
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, bytes, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  CHECK(cuEventRecord(begin, nullptr));
  CHECK(cuLaunchKernel(launch.function, groups, 1, 1, launch.threads, 1, 1, 0, nullptr, nullptr,
                       extra));
  CHECK(cuEventRecord(end, nullptr));
  CHECK(cuEventSynchronize(end));
  float ms = 0;
  CHECK(cuEventElapsedTime(&ms, begin, end));
  CHECK(cuEventDestroy(begin));
  CHECK(cuEventDestroy(end));
  return ms;
}

// The largest relative distance of image and of any gradient field to float64 over sampled tiles.
double distance_to_reference(const Scene& scene, const Candidate& candidate, uint64_t& pairs,
                             uint32_t& n_sampled) {
  constexpr uint32_t kSamples = 48;
  std::vector<float> given[1 + kGradientFields], wanted[1 + kGradientFields];
  const uint32_t n_tiles = scene.tiles_x * scene.tiles_y;
  const size_t n_pixels = size_t{scene.width} * scene.height;
  pairs = n_sampled = 0;
  for (uint32_t s = 0; s < kSamples; ++s) {
    const uint32_t tile = static_cast<uint32_t>(uint64_t{s} * n_tiles / kSamples);
    const TileResult result = blend_tile(scene, tile);
    pairs += result.pairs;
    ++n_sampled;
    for (uint32_t i = 0; i < kTileSize * kTileSize; ++i) {
      const uint32_t x = tile % scene.tiles_x * kTileSize + i % kTileSize;
      const uint32_t y = tile / scene.tiles_x * kTileSize + i / kTileSize;
      if (x >= scene.width || y >= scene.height) continue;
      for (size_t c = 0; c < 3; ++c) {
        given[0].push_back(candidate.image[c * n_pixels + size_t{y} * scene.width + x]);
        wanted[0].push_back(static_cast<float>(result.image[c * kTileSize * kTileSize + i]));
      }
    }
    for (size_t e = 0; e < result.gradients.size(); ++e) {
      const size_t slot = scene.sorted_slots[scene.tile_ranges[2 * tile] + e];
      for (size_t f = 0; f < kGradientFields; ++f) {
        given[1 + f].push_back(candidate.gradients[slot * kGradientFields + f]);
        wanted[1 + f].push_back(static_cast<float>(result.gradients[e][f]));
      }
    }
  }
  double worst = 0;
  for (size_t f = 0; f < kGradientFields; ++f) {
    worst = std::max(worst, relative_distance(given[f], wanted[f], 0, 1));
  }
  return worst;
}

int run(int argc, char** argv) {
  uint32_t n = 300'000, width = 1920, height = 1080;
  int rounds = 40;
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto number = [&] { return i + 1 < argc ? std::atoi(argv[++i]) : 0; };
    if (argument == "--gaussians") {
      n = static_cast<uint32_t>(number());
    } else if (argument == "--size") {
      width = static_cast<uint32_t>(number());
      height = static_cast<uint32_t>(number());
    } else if (argument == "--rounds") {
      rounds = number();
    } else {
      names.push_back(argument);
    }
  }
  if (names.empty() || n == 0 || width == 0 || height == 0 || rounds <= 0) {
    std::fprintf(stderr, "blend_twin: see the head of blend_twin.cpp\n");
    return 2;
  }
  CUdevice device = 0;
  CUcontext context = nullptr;
  char device_name[128] = "";
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDeviceGetName(device_name, sizeof(device_name), device));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  std::vector<Candidate> candidates;
  for (const std::string& name : names) candidates.push_back(load(name));

  const Scene scene = make_scene(n, width, height);
  const uint32_t n_tiles = scene.tiles_x * scene.tiles_y;
  const size_t n_pixels = size_t{width} * height, n_instances = scene.sorted_slots.size();
  const CUdeviceptr step = upload(&scene.step, sizeof(scene.step));
  const CUdeviceptr control = upload(&scene.control, sizeof(scene.control));
  const CUdeviceptr projected = upload(scene.projected), rows = upload(scene.instance_row);
  const CUdeviceptr slots = upload(scene.sorted_slots), ranges = upload(scene.tile_ranges);
  const CUdeviceptr d_image = upload(scene.d_image), error_map = upload(scene.error_map);
  const CUdeviceptr background = allocate(16), bands = allocate(sizeof(BandTable));
  const CUdeviceptr image = allocate(12 * n_pixels), carry = allocate(2048);
  const CUdeviceptr transmittance = allocate(size_t{1024} * n_tiles);
  const CUdeviceptr last = allocate(size_t{1024} * n_tiles), depth_alpha = allocate(8 * n_pixels);
  const CUdeviceptr gradients = allocate(sizeof(InstanceGradient) * n_instances);

  FrameParams params = {};
  params.width = width;
  params.height = height;
  params.tiles_x = scene.tiles_x;
  params.tiles_y = scene.tiles_y;
  params.capacity = n_instances;
  params.n_bands = 1;
  params.inputs = kFrameHasErrorMap;
  const auto block_of = [&](std::vector<CUdeviceptr> bindings) {
    ArgumentBlock block;
    block.begin(n_tiles);
    for (const CUdeviceptr binding : bindings) block.add_address(binding);
    block.add_params(std::as_bytes(std::span(&params, 1)));
    return block;
  };
  const ArgumentBlock forward_block =
      block_of({step, control, projected, rows, slots, ranges, background, bands, image,
                transmittance, last, depth_alpha});
  params.backward = 1;
  const ArgumentBlock backward_block =
      block_of({step, control, projected, rows, slots, ranges, background, bands, transmittance,
                last, d_image, error_map, gradients, carry});

  constexpr int kWarmUps = 5;
  for (int round = -kWarmUps; round < rounds; ++round) {
    for (Candidate& candidate : candidates) {
      Launch forward{candidate.forward, forward_block, candidate.threads};
      Launch backward{candidate.backward, backward_block, candidate.threads};
      const float forward_ms = run_ms(forward, n_tiles), backward_ms = run_ms(backward, n_tiles);
      if (round < 0) continue;
      candidate.forward_ms.push_back(forward_ms);
      candidate.backward_ms.push_back(backward_ms);
    }
  }
  for (Candidate& candidate : candidates) {
    CHECK(cuMemsetD8(gradients, 0xFF, sizeof(InstanceGradient) * n_instances));
    Launch forward{candidate.forward, forward_block, candidate.threads};
    Launch backward{candidate.backward, backward_block, candidate.threads};
    run_ms(forward, n_tiles);
    run_ms(backward, n_tiles);
    candidate.image = download<float>(image, 3 * n_pixels);
    candidate.gradients = download<float>(gradients, kGradientFields * n_instances);
  }

  uint64_t walked = 0;
  for (const uint32_t entry : download<uint32_t>(last, size_t{256} * n_tiles)) walked += entry;
  bool agree = true;
  std::string json;
  char text[512];
  for (const Candidate& candidate : candidates) {
    double apart = relative_distance(candidate.image, candidates[0].image, 0, 1);
    for (size_t f = 0; f + 1 < kGradientFields; ++f) {
      apart = std::max(apart, relative_distance(candidate.gradients, candidates[0].gradients, f,
                                                kGradientFields));
    }
    uint64_t pairs = 0;
    uint32_t n_sampled = 0;
    const double off = distance_to_reference(scene, candidate, pairs, n_sampled);
    agree = agree && apart <= 1e-3 && off <= 1e-3;
    const float forward_ms = median(candidate.forward_ms),
                backward_ms = median(candidate.backward_ms);
    const float ratio_forward = forward_ms / median(candidates[0].forward_ms);
    const float ratio_backward = backward_ms / median(candidates[0].backward_ms);
    std::fprintf(
        stderr, "%-40s forward %.4f ms (%.3fx)  backward %.4f ms (%.3fx)  apart %.1e  off %.1e\n",
        candidate.name.c_str(), forward_ms, ratio_forward, backward_ms, ratio_backward, apart, off);
    std::snprintf(
        text, sizeof(text),
        "%s{\"name\":\"%s\",\"forward_ms\":%.5f,\"backward_ms\":%.5f,\"forward_ratio\":%.4f,"
        "\"backward_ratio\":%.4f,\"apart\":%.3e,\"off_reference\":%.3e}",
        json.empty() ? "" : ",", candidate.name.c_str(), forward_ms, backward_ms, ratio_forward,
        ratio_backward, apart, off);
    json += text;
    if (&candidate == &candidates.back()) {
      std::fprintf(stderr,
                   "%s: %u Gaussians, %zu instances, %ux%u; %.0f entries per tile, a pixel "
                   "walks %.0f and blends %.1f\n",
                   device_name, n, n_instances, width, height,
                   static_cast<double>(n_instances) / n_tiles,
                   static_cast<double>(walked) / static_cast<double>(n_pixels),
                   static_cast<double>(pairs) / (256.0 * n_sampled));
    }
  }
  std::printf(
      "{\"device\":\"%s\",\"gaussians\":%u,\"instances\":%zu,\"width\":%u,\"height\":%u,"
      "\"rounds\":%d,\"agree\":%s,\"kernels\":[%s]}\n",
      device_name, n, n_instances, width, height, rounds, agree ? "true" : "false", json.c_str());
  return agree ? 0 : 1;
}

}  // namespace
}  // namespace millrace::blend_twin

int main(int argc, char** argv) { return millrace::blend_twin::run(argc, argv); }
