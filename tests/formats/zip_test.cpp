// Tests of formats/zip.cpp.
#include "formats/zip.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/file.h"
#include "formats/quantize.h"
#include "io/temporary_folder.h"

namespace millrace {
namespace {

ByteVector bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::vector<ZipEntry> example() {
  return {{"meta.json", bytes_of("{}")}, {"a.bin", bytes_of(std::string(1000, 'x'))}, {"e", {}}};
}

TEST(Zip, RoundTripKeepsNamesAndBytes) {
  const auto entries = decode_zip(encode_zip(example()), "test").or_raise();
  ASSERT_EQ(entries.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(entries[i].name, example()[i].name);
    EXPECT_EQ(entries[i].bytes, example()[i].bytes);
  }
}

TEST(Zip, IsOneThatPythonReadsAndWhatPythonDeflatesIsRead) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_file_atomically(folder / "a.zip", encode_zip(example())).ok());
  const std::string script =
      "import sys, zipfile\n"
      "a = zipfile.ZipFile(sys.argv[1])\n"
      "assert a.testzip() is None\n"
      "assert a.namelist() == ['meta.json', 'a.bin', 'e'], a.namelist()\n"
      "b = zipfile.ZipFile(sys.argv[2], 'w', zipfile.ZIP_DEFLATED)\n"
      "for name in a.namelist(): b.writestr(name, a.read(name))\n"
      "b.comment = b'made elsewhere'\n"
      "b.close()\n";
  ASSERT_TRUE(write_file_atomically(folder / "check.py", script).ok());
  const std::string command = "python3 " + (folder / "check.py").string() + " " +
                              (folder / "a.zip").string() + " " + (folder / "b.zip").string();
  ASSERT_EQ(std::system(command.c_str()), 0);
  const auto bytes = read_file(folder / "b.zip").or_raise();
  const auto entries = decode_zip(bytes, "b.zip").or_raise();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[1].bytes, example()[1].bytes);
}

TEST(Zip, DamageIsSeen) {
  const ByteVector sound = encode_zip(example());
  for (size_t n = 0; n < sound.size(); n += 7) {
    EXPECT_FALSE(decode_zip(ByteSpan(sound).first(n), "cut.zip").ok()) << n;
  }
  ByteVector flipped = sound;
  flipped[100] ^= std::byte{1};
  const auto read = decode_zip(flipped, "flipped.zip");
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("flipped.zip: a.bin"), std::string::npos)
      << read.error().message;
}

}  // namespace
}  // namespace millrace
