// millrace eval and millrace render as users run them: what they print of their speed.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "app/tiny_capture_suite.h"

namespace millrace {
namespace {

using nlohmann::json;

class ViewCommands : public TinyCaptureSuite {
 protected:
  void SetUp() override {
    const Outcome trained =
        run_millrace(words_for("train", run_, {"--iterations", "5"}), folder_ / "scratch");
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
  }
  Words eval_words() { return {"eval", capture_.string(), "--model", model(), "--device", "cpu"}; }
  Words render_words() {
    return {"render",    model(),
            "--cameras", (run_ / "cameras.json").string(),
            "-o",        (folder_ / "images").string(),
            "--device",  "cpu"};
  }
  std::string model() { return (run_ / "point_cloud/iteration_5/point_cloud.ply").string(); }

  // Runs `words` for people and for programs; both must tell the frames per second.
  void expect_frames_per_second(Words words) {
    const Outcome told = run_millrace(words, folder_ / "scratch");
    ASSERT_EQ(told.exit_code, 0) << told.err;
    std::smatch found;
    ASSERT_TRUE(std::regex_search(told.out, found, std::regex("\\(([0-9.]+) frames/s\\)")))
        << told.out;
    EXPECT_GT(std::stod(found[1]), 0);
    words.insert(words.end(), {"--overwrite", "--json-events"});
    const Outcome events = run_millrace(words, folder_ / "scratch");
    ASSERT_EQ(events.exit_code, 0) << events.err;
    const size_t last = events.out.rfind('\n', events.out.size() - 2) + 1;
    const json done = json::parse(events.out.substr(last));
    EXPECT_EQ(done["event"], "done");
    EXPECT_GT(done["frames_per_second"].get<double>(), 0);
  }

  std::filesystem::path run_ = folder_ / "run";
};

TEST_F(ViewCommands, EvalTellsItsFramesPerSecond) { expect_frames_per_second(eval_words()); }

TEST_F(ViewCommands, RenderTellsItsFramesPerSecond) { expect_frames_per_second(render_words()); }

}  // namespace
}  // namespace millrace
