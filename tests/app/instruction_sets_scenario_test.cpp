// Scenario: the program on every instruction set that the processor has. MILLRACE_ISA is read once
// per process, so each run is one.
#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "app/tiny_capture_suite.h"
#include "io/ply.h"
#include "kernels/isa/hot.h"

namespace millrace {
namespace {

using nlohmann::json;

std::vector<std::string> usable() {
  std::vector<std::string> names;
  for (const char* isa : {"v2", "v3", "v4"}) {
    if (kernels::hot_kernels_of(isa)) names.emplace_back(isa);
  }
  return names;
}

class InstructionSets : public TinyCaptureSuite {
 protected:
  void SetUp() override {
    const char* before = std::getenv("MILLRACE_ISA");
    if (before) before_ = before;
  }
  void TearDown() override {
    unsetenv("MILLRACE_ISA");
    if (!before_.empty()) setenv("MILLRACE_ISA", before_.c_str(), 1);
  }

  // Trains on `isa` and returns the report.
  json train(const std::string& isa, const Words& more) {
    setenv("MILLRACE_ISA", isa.c_str(), 1);
    Words words = words_for("train", out(), more);
    words.emplace_back("--overwrite");
    const Outcome outcome = run_millrace(words, folder_ / "scratch");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    json report = json::parse(content_of(out() / "report.json"));
    EXPECT_EQ(report["device"]["driver"], "host threads, x86-64-" + isa);
    return report;
  }
  GaussianCloud model(const char* iteration) {
    return read_gaussian_ply(out() / "point_cloud" / iteration / "point_cloud.ply").or_raise();
  }
  std::filesystem::path out() { return folder_ / "run"; }

  std::string before_;
};

double relative_l2(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference += std::pow(double{a[i]} - b[i], 2);
    size += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(difference / size);
}

// [N,9], in units of the largest variance of each row. A round Gaussian's rotation has no gradient
// but rounding errors, which Adam makes steps of: rotations count by what they turn.
std::vector<float> covariances(const GaussianCloud& cloud) {
  std::vector<float> out;
  for (size_t row = 0; row < cloud.count(); ++row) {
    const float* q = &cloud.rotations[4 * row];
    const Eigen::Quaternionf turn(q[0], q[1], q[2], q[3]);
    const Eigen::Map<const Eigen::Array3f> raw(&cloud.log_scales[3 * row]);
    const Eigen::Vector3f variance = (2 * (raw - raw.maxCoeff())).exp();
    const Eigen::Matrix3f r = turn.normalized().toRotationMatrix();
    const Eigen::Matrix3f covariance = r * variance.asDiagonal() * r.transpose();
    out.insert(out.end(), covariance.data(), covariance.data() + 9);
  }
  return out;
}

// CONTRACTS.md: parameters within 1e-3 relative L2 after 20 steps, PSNR within 0.1 dB after 200.
TEST_F(InstructionSets, AgreeAfterTwentyStepsAndInPsnrAfterTwoHundred) {
  const Words few = {"--iterations", "20", "--sh-degree-interval", "5"};
  const Words many = {"--iterations", "200", "--sh-degree-interval", "50"};
  const std::vector<std::string> isas = usable();
  train(isas[0], few);
  const GaussianCloud first = model("iteration_20");
  const double psnr = train(isas[0], many)["psnr"];
  for (size_t i = 1; i < isas.size(); ++i) {
    SCOPED_TRACE(isas[i]);
    train(isas[i], few);
    const GaussianCloud other = model("iteration_20");
    EXPECT_LE(relative_l2(other.means, first.means), 1e-3);
    EXPECT_LE(relative_l2(other.log_scales, first.log_scales), 1e-3);
    EXPECT_LE(relative_l2(covariances(other), covariances(first)), 1e-3);
    EXPECT_LE(relative_l2(other.opacities, first.opacities), 1e-3);
    EXPECT_LE(relative_l2(other.sh0, first.sh0), 1e-3);
    EXPECT_LE(relative_l2(other.sh_rest, first.sh_rest), 1e-3);
    EXPECT_NEAR(train(isas[i], many)["psnr"].get<double>(), psnr, 0.1);
  }
}

TEST_F(InstructionSets, EachGivesTheSameStateWithOneTwoAndEightThreads) {
  std::vector<std::string> states;
  for (const std::string& isa : usable()) {
    std::vector<std::string> hashes;
    for (const char* threads : {"1", "2", "8"}) {
      const json report = train(isa, {"--iterations", "120", "--refine-start", "20",
                                      "--refine-every", "20", "--threads", threads});
      hashes.push_back(report["state_sha256"]);
    }
    EXPECT_EQ(hashes[1], hashes[0]) << isa;
    EXPECT_EQ(hashes[2], hashes[0]) << isa;
    states.push_back(hashes[0]);
  }
  // Or the environment did not reach the program.
  for (size_t i = 1; i < states.size(); ++i) EXPECT_NE(states[i], states[0]);
}

}  // namespace
}  // namespace millrace
