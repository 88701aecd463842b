// What the GPU kernels take for the layout of records and argument blocks, as the Slang compiler
// reports it, against C++.
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "device/argument_block.h"
#include "kernels/gpu_plan.h"
#include "kernels/splat_params.h"
#include "kernels/tensor_params.h"

namespace millrace {
namespace {

using nlohmann::json;

json reflection_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return json::parse(file);
}

// The block that an entry point takes by value.
const json* argument_block(const json& entry) {
  for (const json& parameter : entry["parameters"]) {
    if (parameter["type"]["kind"] == "struct") return &parameter;
  }
  return nullptr;
}

uint64_t size_of(const json& field) { return field["binding"]["size"]; }
uint64_t offset_of(const json& field) { return field["binding"]["offset"]; }

const json* field_called(const json& parent, const std::string& name) {
  for (const json& field : parent["type"]["fields"]) {
    if (field["name"] == name) return &field;
  }
  return nullptr;
}

class GpuRecords : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(MILLRACE_GPU_RECORDS)) {
      GTEST_SKIP() << "built without the Slang compiler";
    }
    reflection_ = reflection_of(MILLRACE_GPU_RECORDS);
    block_ = argument_block(reflection_["entryPoints"][0]);
    ASSERT_NE(block_, nullptr);
  }

  // The record of the block's field `name`, which C++ gives `bytes`.
  void begin(const char* name, size_t bytes) {
    record_ = field_called(*block_, name);
    ASSERT_NE(record_, nullptr) << name;
    EXPECT_EQ(size_of(*record_), bytes) << name;
    n_checked_ = 0;
  }
  void expect_field(const char* name, size_t offset, size_t bytes) {
    const json* field = field_called(*record_, name);
    ASSERT_NE(field, nullptr) << name;
    EXPECT_EQ(offset_of(*field), offset) << (*record_)["name"] << " " << name;
    EXPECT_EQ(size_of(*field), bytes) << (*record_)["name"] << " " << name;
    ++n_checked_;
  }
  void expect_no_other_field() {
    EXPECT_EQ((*record_)["type"]["fields"].size(), n_checked_) << (*record_)["name"];
  }

 private:
  json reflection_;
  const json* block_ = nullptr;
  const json* record_ = nullptr;
  size_t n_checked_ = 0;
};

#define EXPECT_FIELD(Record, field) \
  expect_field(#field, offsetof(Record, field), sizeof(Record::field))

TEST_F(GpuRecords, TheCameraHasTheBytesOfCpp) {
  begin("camera", sizeof(CameraRecord));
  EXPECT_FIELD(CameraRecord, rotation);
  EXPECT_FIELD(CameraRecord, translation);
  EXPECT_FIELD(CameraRecord, centre);
  EXPECT_FIELD(CameraRecord, fx);
  EXPECT_FIELD(CameraRecord, fy);
  EXPECT_FIELD(CameraRecord, cx);
  EXPECT_FIELD(CameraRecord, cy);
  EXPECT_FIELD(CameraRecord, near_plane);
  EXPECT_FIELD(CameraRecord, width);
  EXPECT_FIELD(CameraRecord, height);
  EXPECT_FIELD(CameraRecord, reserved);
  expect_no_other_field();
}

TEST_F(GpuRecords, TheStepBlockHasTheBytesOfCpp) {
  begin("step", sizeof(StepBlock));
  EXPECT_FIELD(StepBlock, transaction);
  EXPECT_FIELD(StepBlock, seed);
  EXPECT_FIELD(StepBlock, epoch);
  EXPECT_FIELD(StepBlock, step);
  EXPECT_FIELD(StepBlock, view);
  EXPECT_FIELD(StepBlock, sh_degree);
  EXPECT_FIELD(StepBlock, background);
  EXPECT_FIELD(StepBlock, rate_means);
  EXPECT_FIELD(StepBlock, rate_scales);
  EXPECT_FIELD(StepBlock, rate_rotations);
  EXPECT_FIELD(StepBlock, rate_opacities);
  EXPECT_FIELD(StepBlock, rate_sh0);
  EXPECT_FIELD(StepBlock, rate_sh_rest);
  EXPECT_FIELD(StepBlock, inv_sqrt_bias2);
  EXPECT_FIELD(StepBlock, ssim_weight);
  EXPECT_FIELD(StepBlock, opacity_reg);
  EXPECT_FIELD(StepBlock, scale_reg);
  EXPECT_FIELD(StepBlock, noise_scale);
  EXPECT_FIELD(StepBlock, min_opacity);
  EXPECT_FIELD(StepBlock, max_rows);
  EXPECT_FIELD(StepBlock, modes);
  EXPECT_FIELD(StepBlock, reserved);
  expect_no_other_field();
}

TEST_F(GpuRecords, TheControlRecordHasTheBytesOfCpp) {
  begin("gate", sizeof(Gate));
  EXPECT_FIELD(Gate, accepted);
  EXPECT_FIELD(Gate, committed);
  EXPECT_FIELD(Gate, first_rejected);
  EXPECT_FIELD(Gate, need_instances);
  EXPECT_FIELD(Gate, need_rows);
  EXPECT_FIELD(Gate, epoch);
  EXPECT_FIELD(Gate, closed);
  expect_no_other_field();
  begin("counts", sizeof(Counts));
  EXPECT_FIELD(Counts, rows);
  EXPECT_FIELD(Counts, visible);
  EXPECT_FIELD(Counts, instances);
  EXPECT_FIELD(Counts, dead);
  EXPECT_FIELD(Counts, added);
  EXPECT_FIELD(Counts, skipped_rows);
  expect_no_other_field();
  begin("metrics", sizeof(StepMetrics));
  EXPECT_FIELD(StepMetrics, transaction);
  EXPECT_FIELD(StepMetrics, epoch);
  EXPECT_FIELD(StepMetrics, step);
  EXPECT_FIELD(StepMetrics, loss);
  EXPECT_FIELD(StepMetrics, l1);
  EXPECT_FIELD(StepMetrics, ssim);
  EXPECT_FIELD(StepMetrics, mse);
  EXPECT_FIELD(StepMetrics, rows);
  EXPECT_FIELD(StepMetrics, visible);
  EXPECT_FIELD(StepMetrics, instances);
  expect_no_other_field();
  begin("control", sizeof(Control));
  EXPECT_FIELD(Control, gate);
  EXPECT_FIELD(Control, counts);
  EXPECT_FIELD(Control, metrics);
  expect_no_other_field();
}

// Three whole loads each: the first field of each load has its offset.
TEST_F(GpuRecords, ProjectedGaussiansAndTheirGradientsHaveTheBytesOfCpp) {
  begin("projected", sizeof(Projected));
  expect_field("p0", offsetof(Projected, x), 16);
  expect_field("p1", offsetof(Projected, c), 16);
  expect_field("p2", offsetof(Projected, blue), 16);
  expect_no_other_field();
  begin("gradient", sizeof(InstanceGradient));
  expect_field("g0", offsetof(InstanceGradient, d_x), 16);
  expect_field("g1", offsetof(InstanceGradient, half_yy22), 16);
  expect_field("g2", offsetof(InstanceGradient, d_blue), 16);
  expect_no_other_field();
}

TEST_F(GpuRecords, BandsHaveTheBytesOfCpp) {
  begin("band", sizeof(Band));
  EXPECT_FIELD(Band, first_tile);
  EXPECT_FIELD(Band, last_tile);
  EXPECT_FIELD(Band, rank);
  EXPECT_FIELD(Band, instances);
  EXPECT_FIELD(Band, is_front);
  EXPECT_FIELD(Band, is_back);
  EXPECT_FIELD(Band, mirror);
  expect_no_other_field();
  begin("bands", sizeof(BandTable));
  EXPECT_FIELD(BandTable, n_needed);
  EXPECT_FIELD(BandTable, bands);
  expect_no_other_field();
}

TEST_F(GpuRecords, ParameterBlocksHaveTheBytesOfCpp) {
  begin("frame", sizeof(FrameParams));
  EXPECT_FIELD(FrameParams, width);
  EXPECT_FIELD(FrameParams, height);
  EXPECT_FIELD(FrameParams, tiles_x);
  EXPECT_FIELD(FrameParams, tiles_y);
  EXPECT_FIELD(FrameParams, capacity);
  EXPECT_FIELD(FrameParams, sh_rest_lanes);
  EXPECT_FIELD(FrameParams, write_depth);
  EXPECT_FIELD(FrameParams, n_bands);
  EXPECT_FIELD(FrameParams, band);
  EXPECT_FIELD(FrameParams, backward);
  EXPECT_FIELD(FrameParams, inputs);
  expect_no_other_field();
  begin("decide", sizeof(DecideParams));
  EXPECT_FIELD(DecideParams, capacity);
  EXPECT_FIELD(DecideParams, row_capacity);
  EXPECT_FIELD(DecideParams, check_rows);
  EXPECT_FIELD(DecideParams, n_bands);
  expect_no_other_field();
  begin("reopen", sizeof(ReopenParams));
  EXPECT_FIELD(ReopenParams, epoch);
  begin("loss", sizeof(LossParams));
  EXPECT_FIELD(LossParams, width);
  EXPECT_FIELD(LossParams, height);
  begin("backward", sizeof(BackwardParams));
  EXPECT_FIELD(BackwardParams, sh_rest_lanes);
  EXPECT_FIELD(BackwardParams, fused_adam);
  EXPECT_FIELD(BackwardParams, statistics);
  begin("rows", sizeof(RowsParams));
  EXPECT_FIELD(RowsParams, sh_rest_lanes);
  EXPECT_FIELD(RowsParams, mode);
  begin("gather", sizeof(GatherRowsParams));
  EXPECT_FIELD(GatherRowsParams, lanes);
}

TEST_F(GpuRecords, TheHeadHasTheBytesOfTheArgumentBlock) {
  using Head = ArgumentBlock::Head;
  begin("head", sizeof(Head));
  EXPECT_FIELD(Head, threads);
  EXPECT_FIELD(Head, count);
  EXPECT_FIELD(Head, scratch);
  EXPECT_FIELD(Head, pass);
  EXPECT_FIELD(Head, groups);
  expect_no_other_field();
}

struct TableRow {
  KernelId id;
  const char* access;
  size_t params_bytes;
};
constexpr TableRow kTable[] = {
#define MILLRACE_KERNEL(name, params, access) {KernelId::name, access, sizeof(params)},
#include "kernels/table.inc"
#undef MILLRACE_KERNEL
};

// A kernel that repeats its last binding has its parameters wherever these end.
TEST_F(GpuRecords, EveryEntryPointTakesItsKernelsBindingsAndThenItsParameters) {
  std::map<std::string, json> entries;
  for (const auto& file : std::filesystem::directory_iterator(MILLRACE_GPU_REFLECTIONS)) {
    if (file.path().extension() != ".json") continue;
    const json module = reflection_of(file.path());
    for (const json& entry : module["entryPoints"]) entries[entry["name"]] = entry;
  }
  int n_checked = 0;
  for (const TableRow& row : kTable) {
    const std::string access = row.access;
    for (const GpuPass& pass : gpu_passes(row.id)) {
      SCOPED_TRACE(pass.entry_point);
      ASSERT_TRUE(entries.contains(pass.entry_point));
      const json* block = argument_block(entries[pass.entry_point]);
      ASSERT_NE(block, nullptr);
      const json* params = field_called(*block, "params");
      if (params == nullptr) continue;
      EXPECT_EQ(size_of(*params), row.params_bytes);
      if (access.ends_with('*')) continue;
      EXPECT_EQ(offset_of(*params), sizeof(ArgumentBlock::Head) + 8 * access.size());
      ++n_checked;
    }
  }
  EXPECT_GT(n_checked, 40);
}

}  // namespace
}  // namespace millrace
