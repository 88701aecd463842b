// millrace convert and export as users run them.
#include <gtest/gtest.h>

#include "app/process.h"
#include "formats/model_file.h"
#include "formats/random_model.h"
#include "io/temporary_folder.h"

namespace millrace {
namespace {

TEST(ConvertCommand, GoesFromEachFormatToEach) {
  const TemporaryFolder folder;
  const std::vector<std::string> endings = {".ply", ".compressed.ply", ".splat", ".spz", ".sog",
                                            ".html"};
  ASSERT_TRUE(write_model(folder / "in.ply", random_model(50, 1), ModelFormat::Ply).ok());
  for (const std::string& from : endings) {
    const std::string model = (folder / ("from" + from)).string();
    const Outcome made =
        run_millrace({"convert", (folder / "in.ply").string(), model}, folder / "scratch");
    ASSERT_EQ(made.exit_code, 0) << made.err;
    for (const std::string& to : endings) {
      const std::string out = (folder / ("to" + from + to)).string();
      const Outcome outcome = run_millrace({"convert", model, out}, folder / "scratch");
      ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
      EXPECT_NE(outcome.out.find("50 Gaussians"), std::string::npos) << outcome.out;
      EXPECT_EQ(read_model(out).or_raise().count(), 50u);
    }
  }
}

TEST(ConvertCommand, RefusesWhatItCannotDoWithTheDocumentedCodes) {
  const TemporaryFolder folder;
  const std::string in = (folder / "in.ply").string();
  ASSERT_TRUE(write_model(in, random_model(5, 0), ModelFormat::Ply).ok());
  const auto code = [&](const std::vector<std::string>& words) {
    return run_millrace(words, folder / "scratch").exit_code;
  };
  EXPECT_EQ(code({"convert", in, in}), 2);  // exists
  EXPECT_EQ(code({"convert", in, (folder / "out.obj").string()}), 2);
  EXPECT_EQ(code({"convert", in, (folder / "out.spz").string(), "--spz-version", "2"}), 2);
  EXPECT_EQ(code({"convert", (folder / "absent.spz").string(), (folder / "o.ply").string()}), 3);
  EXPECT_EQ(code({"convert", in, (folder / "o").string(), "--to", "spz"}), 0);
}

TEST(ExportCommand, WritesEveryFormatAndTellsHowNearItIs) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_model(folder / "m.ply", tame_model(300, 3), ModelFormat::Ply).ok());
  const std::vector<std::string> words = {
      "export", (folder / "m.ply").string(), "--to",     "ply,compressed-ply,splat,spz,sog,html",
      "-o",     (folder / "out").string(),   "--device", "cpu"};
  const Outcome outcome = run_millrace(words, folder / "scratch");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* ending : {".ply", ".compressed.ply", ".splat", ".spz", ".sog", ".html"}) {
    EXPECT_EQ(read_model(folder / (std::string("out/m") + ending)).or_raise().count(), 300u);
  }
  EXPECT_NE(outcome.out.find("m.ply: "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("100.0 dB"), std::string::npos) << outcome.out;
  EXPECT_EQ(run_millrace(words, folder / "scratch").exit_code, 2);  // files are there
}

TEST(ExportCommand, UnknownFormatsAreUsageErrors) {
  const TemporaryFolder folder;
  const Outcome outcome =
      run_millrace({"export", "m.ply", "--to", "obj", "-o", "x"}, folder / "scratch");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("'obj' is no format"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace millrace
