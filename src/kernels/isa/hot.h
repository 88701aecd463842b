// The hot inner functions of the CPU kernels. One table of them exists per instruction set;
// hot_kernels() chooses at start. They hold no loops over tasks: the files of src/kernels/ do that.
#pragma once

#include <cstdint>

#include "kernels/appearance_params.h"
#include "kernels/splat_params.h"

namespace millrace::kernels {

/// A parameter group with its Adam moments: [ceil(N/32), lanes, 32] each.
struct GroupPointers {
  float* value = nullptr;
  float* first_moment = nullptr;
  float* second_moment = nullptr;
};

struct ProjectArgs {
  const StepBlock* step;
  const CameraRecord* camera;
  const float* geometry;
  const float* sh_rest;
  uint32_t sh_rest_lanes;
  uint32_t tiles_x, tiles_y;
  uint32_t rows;
  Projected* projected;  // [N]
  uint32_t* n_tiles;     // [N], here only 0 (culled) or 1 (to be counted)
  uint32_t* depth_key;   // [N], bits of the depth; ~0 where culled
};

struct BlendArgs {
  const StepBlock* step;
  const Projected* projected;
  const uint32_t* instance_row;  // [capacity] row of each slot
  const uint32_t* sorted_slots;  // [capacity] slots in (tile, depth) order
  const uint32_t* tile_ranges;   // [tiles,2] begin and end in sorted_slots
  uint32_t width, height, tiles_x;
  const uint8_t* background;  // [3,H,W] or null: the step block's colour or random one
  // A depth slice of a tile: instances before it, and whether the first and the last are in it.
  uint32_t rank;
  bool is_front, is_back;
  // forward: outputs (between slices: the state so far); backward: inputs
  float* image;          // [3,H,W]
  float* depth_alpha;    // [2,H,W] or null
  float* transmittance;  // [tiles,256] final, tile-major
  uint32_t* last;        // [tiles,256] entries walked up to the last contributor
  // backward
  const float* d_image;         // [3,H,W]
  const float* error_map;       // [H,W] or null
  const float* d_alpha;         // [H,W] to the frame's opacity, or null
  InstanceGradient* gradients;  // [capacity], by slot
  float* carry;                 // [2,256] what a slice leaves for the one before it
};

struct BackwardArgs {
  const StepBlock* step;
  const CameraRecord* camera;
  const uint32_t* n_tiles;
  const uint32_t* first_slot;
  const InstanceGradient* gradients;
  uint32_t sh_rest_lanes;
  uint32_t rows;
  GroupPointers geometry, sh_rest;
  float* d_geometry;  // accumulate form: gradients are added here and nothing else is written
  float* d_sh_rest;
  uint32_t live;       // rows that hold a Gaussian
  float* statistics;   // [ceil(N/32), kStatisticLanes, 32] or null
  bool records_edges;  // d_depth of the records is an edge sum
  SceneBounds bounds;  // read where the step block says kMrnfOn
};

struct PhotometricArgs {
  const float* image;     // [3,H,W]
  const uint8_t* target;  // [3,H,W]
  uint32_t width, height;
  float ssim_weight;
  // [3,3,H,W]: map, channel: dS/dmu1, dS/dsigma1^2, dS/dsigma12, each times the pixel's weight.
  // [4,3,H,W] with `raw`: the first three are to that, the fourth is dS/dmu of the image.
  float* maps;
  float* d_image;  // [3,H,W]
  // Null: without.
  const float* raw = nullptr;     // [3,H,W] SSIM's contrast and structure are of this image
  const float* weight = nullptr;  // [H,W] of each pixel
  float weight_sum = 0;           // with `weight`: what the loss is divided by, of all channels
  bool raw_gradient = false;      // with `raw`: d_image is the gradient to that
};

/// PPISP's map of one frame: c -> response(homography(c gain fall-off)).
struct PpispMap {
  float gain;              // 2^exposure
  float vignetting[3][5];  // of each channel: centre x y, alpha 0 1 2
  float homography[9];     // of (red, green, sum), row-major; the last is 1
  float response[3][5];    // of each channel: gain below the centre, toe, shoulder, gamma, centre
  bool has_response;       // else clamped to [0,1] alone
};

struct PpispArgs {
  PpispMap map;
  const float* image;  // [3,H,W] as rendered
  uint32_t width, height;
  float* corrected;  // [3,H,W], forward
  float* d_image;    // [3,H,W], backward: in place
};

struct GridArgs {
  const float* grid;    // [C,8,16,16]
  const float* offset;  // [C], of all cells
  const float* image;   // [3,H,W] that it is applied to
  uint32_t width, height, channels;
  float* shown;     // [3,H,W], forward
  float* d_image;   // [3,H,W], backward: in place
  float* partials;  // [areas,4,8,kGridMaxChannels], backward
};

constexpr uint32_t kAffineChains = 128;

struct HotKernels {
  const char* name;  // "x86-64-v3"
  int width;         // lanes
  /// Rows [32 block, 32 block + 32) below args.rows.
  void (*project_block)(const ProjectArgs& args, uint32_t block);
  /// kernels/tile_cover.h. Counting and emitting are one function: two copies might round
  /// differently.
  uint32_t (*cover_tiles)(const Projected& gaussian, uint32_t tiles_x, uint32_t tiles_y,
                          uint32_t* tiles);
  void (*blend_forward_tile)(const BlendArgs& args, uint32_t tile);
  void (*blend_backward_tile)(const BlendArgs& args, uint32_t tile);
  /// Sums instance gradients, goes back through projection and applies Adam. Returns how many rows
  /// were skipped because their gradient was not finite.
  uint32_t (*backward_adam_block)(const BackwardArgs& args, uint32_t block);
  /// The same gradients added to d_geometry and d_sh_rest.
  void (*backward_accumulate_block)(const BackwardArgs& args, uint32_t block);
  /// Adam from d_geometry and d_sh_rest. Returns the skipped rows.
  uint32_t (*adam_block)(const BackwardArgs& args, uint32_t block);
  /// One band of one channel. sums: [kLossSums] sums of |x-y|, SSIM and (x-y)^2 over the band's
  /// valid pixels.
  void (*photometric_forward_band)(const PhotometricArgs& args, uint32_t channel, uint32_t band,
                                   float* sums);
  void (*photometric_backward_band)(const PhotometricArgs& args, uint32_t channel, uint32_t band);
  /// kPpispBand rows of all channels. sums: [kPpispSums].
  void (*ppisp_forward_band)(const PpispArgs& args, uint32_t band);
  void (*ppisp_backward_band)(const PpispArgs& args, uint32_t band, float* sums);
  /// The pixels between four columns of a bilateral grid's cells (kernels/grid_layout.h).
  void (*grid_forward_area)(const GridArgs& args, uint32_t area);
  void (*grid_backward_area)(const GridArgs& args, uint32_t area);
  /// x[kAffineChains] <- a x + b, `rounds` times.
  void (*iterate_affine)(float* x, uint32_t rounds, float a, float b);
};

/// Random background of `n` pixels from `first`: a function of (seed, step, pixel), so a replay
/// draws the same. Lives outside the per-instruction-set files, which include no standard library
/// code.
void random_background(const StepBlock& step, uint32_t first, uint32_t n, float* red, float* green,
                       float* blue);

/// The table for this processor's widest instruction set, or for the one that MILLRACE_ISA names
/// (v2, v3, v4), if it has that. Chosen once.
const HotKernels& hot_kernels();
/// The table for the instruction set of that name; null where this processor has it not.
const HotKernels* hot_kernels_of(const char* isa);

}  // namespace millrace::kernels
