// Tests of formats/html.cpp. What a browser shows: tools/html_shot.py, in .ci/run.
#include "formats/html.h"

#include <gtest/gtest.h>

#include "formats/broken_files.h"
#include "formats/default_views.h"
#include "formats/random_model.h"
#include "formats/spz.h"
#include "io/temporary_folder.h"

namespace millrace {
namespace {

TEST(Html, HoldsTheModelOfItsSpz) {
  const TemporaryFolder folder;
  const GaussianCloud cloud = random_model(77, 3);
  ASSERT_TRUE(write_html(folder / "a.html", cloud).ok());
  const GaussianCloud read = read_model(folder / "a.html").or_raise();
  const GaussianCloud spz = decode_spz(encode_spz(cloud), "test").or_raise();
  EXPECT_EQ(read.means, spz.means);
  EXPECT_EQ(read.sh_rest, spz.sh_rest);
}

TEST(Html, NamesNoOtherAddressAndNothingIsLeftUnfilled) {
  const TemporaryFolder folder;
  HtmlOptions options;
  options.title = "</script><b>";
  options.cameras = ring_cameras(random_model(5, 0), 2, 40, 30);
  ASSERT_TRUE(write_html(folder / "a.html", random_model(5, 0), options).ok());
  const std::string page = read_text_file(folder / "a.html").or_raise();
  for (const char* text : {"http:", "https:", "src=", "@SCENE@", "@MODEL@", "@SCRIPT@", "<b>"}) {
    EXPECT_EQ(page.find(text), std::string::npos) << text;
  }
  EXPECT_NE(page.find("\"width\":40"), std::string::npos);
}

TEST(Html, Base64IsThatOfTheStandard) {
  for (const auto& [plain, coded] : {std::pair{"", ""},
                                     {"f", "Zg=="},
                                     {"fo", "Zm8="},
                                     {"foo", "Zm9v"},
                                     {"foobar", "Zm9vYmFy"}}) {
    const std::string text = plain;
    const auto bytes = std::as_bytes(std::span(text));
    EXPECT_EQ(base64(bytes), coded);
    EXPECT_EQ(unbase64(coded, "test").or_raise(), ByteVector(bytes.begin(), bytes.end()));
  }
}

TEST(Html, ThatIsBrokenIsSeen) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_html(folder / "a.html", random_model(30, 1)).ok());
  const std::string page = read_text_file(folder / "a.html").or_raise();
  // The viewer's text may change without harm to the model.
  const size_t begin = page.find("type=\"text/plain\">");
  const size_t end = page.find("</script>", begin);
  for (size_t n = 0; n < end; n += end / 30) {
    ASSERT_TRUE(write_file_atomically(folder / "cut.html", page.substr(0, n)).ok());
    const auto read = read_model(folder / "cut.html");
    EXPECT_FALSE(read.ok()) << n;
    expect_sane(read, folder / "cut.html");
  }
  for (size_t at = begin + 18; at < end; at += 37) {
    std::string garbled = page;
    garbled[at] = garbled[at] == 'A' ? 'B' : 'A';
    ASSERT_TRUE(write_file_atomically(folder / "garbled.html", garbled).ok());
    expect_sane(read_model(folder / "garbled.html"), folder / "garbled.html");
  }
}

}  // namespace
}  // namespace millrace
