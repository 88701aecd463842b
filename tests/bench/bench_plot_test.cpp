// The plot is well-formed XML, whatever it is given.
#include <gtest/gtest.h>

#include <regex>
#include <vector>

#include "bench/bench_report.h"
#include "bench/report_example.h"

namespace millrace::test {
namespace {

/// What is wrong with `xml`; empty if it is well formed (elements, quoted attributes, entities).
std::string fault_of(const std::string& xml) {
  static const std::regex tag("<(/?)([a-z]+)((?: [a-zA-Z0-9-]+=\"[^\"<]*\")*) ?(/?)>");
  static const std::regex entity("&(?!(?:amp|lt|gt|quot);)");
  std::vector<std::string> open;
  size_t at = 0;
  for (;;) {
    const size_t next = xml.find('<', at);
    const std::string text = xml.substr(at, next - at);
    if (std::regex_search(text, entity) || text.find('>') != std::string::npos) return text;
    if (next == std::string::npos) break;
    std::smatch match;
    const std::string rest = xml.substr(next, xml.find('>', next) + 1 - next);
    if (!std::regex_match(rest, match, tag)) return "tag " + rest;
    if (match[1].length() > 0) {
      if (open.empty() || open.back() != match[2]) return "end of " + match[2].str();
      open.pop_back();
    } else if (match[4].length() == 0) {
      open.push_back(match[2]);
    }
    at = next + rest.size();
  }
  return open.empty() ? "" : "open " + open.back();
}

TEST(BenchPlot, TheCheckFindsFaults) {
  EXPECT_EQ(fault_of("<a><b x=\"1\"/></a>\n"), "");
  for (const char* bad : {"<a>", "<a></b>", "<a x=1/>", "<a>&nope;</a>", "<a>></a>"}) {
    EXPECT_NE(fault_of(bad), "") << bad;
  }
}

TEST(BenchPlot, IsWellFormedAndHasBothSidesAndTheRatios) {
  const std::string svg = bench_svg(example_report());
  EXPECT_EQ(fault_of(svg), "");
  for (const char* part : {"a&lt;b&gt;&amp;c", "median 2.0000", "ms per step by window",
                           "B/A of each pair", "drift"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(BenchPlot, IsWellFormedWithoutRunsWithOneAndWithEqualRuns) {
  BenchReport report = example_report();
  report.dataset = "bytes \xff and \"quotes\"";
  const std::vector<RunRecord> runs = report.runs;
  for (const std::vector<RunRecord>& some :
       {std::vector<RunRecord>{}, {runs[0]}, {run_of(0, 0, 5), run_of(1, 0, 5)}}) {
    report.runs = some;
    const std::string svg = bench_svg(report);
    EXPECT_EQ(fault_of(svg), "");
    EXPECT_EQ(svg.find("nan"), std::string::npos) << some.size();
    EXPECT_EQ(svg.find("inf"), std::string::npos) << some.size();
  }
}

}  // namespace
}  // namespace millrace::test
