// The progress line and how often it and the step events come.
#include "app/progress.h"

#include <gtest/gtest.h>

#include <limits>

namespace millrace {
namespace {

StepProgress at_step(uint32_t step, uint32_t iterations) {
  StepProgress p;
  p.step = step;
  p.iterations = iterations;
  p.loss = 0.0828f;
  p.train_psnr = 24.314;
  p.gaussians = 109451;
  p.steps_per_second = 35.2;
  p.eta_seconds = 820;
  return p;
}

TEST(Progress, NamesEverythingOnOneLine) {
  EXPECT_EQ(
      progress_text(at_step(1199, 30000), false, 0),
      "1200/30000 4 % | 35.2 steps/s | ETA 13:40 | loss 0.0828 | PSNR 24.31 | 109,451 Gaussians");
}

TEST(Progress, HasABarWhereItFits) {
  const std::string wide = progress_text(at_step(14999, 30000), true, 200);
  EXPECT_EQ(wide.rfind("[##########..........] 15000/30000 50 %", 0), 0u) << wide;
  EXPECT_EQ(progress_text(at_step(0, 30000), true, 80).front(), '1');
}

TEST(Progress, ShowsAQuestionMarkForWhatIsNotKnown) {
  StepProgress p = at_step(0, 10);
  p.loss = std::numeric_limits<float>::quiet_NaN();
  p.eta_seconds = std::numeric_limits<double>::infinity();
  EXPECT_NE(progress_text(p, false, 0).find("ETA ? | loss ? |"), std::string::npos);
  p = at_step(0, 10);
  p.steps_per_second = 0;  // not measured yet
  p.eta_seconds = 0;
  EXPECT_NE(progress_text(p, false, 0).find("| ? steps/s | ETA ? |"), std::string::npos);
}

TEST(Progress, LinesComeEveryTwentiethButAtMostOnceASecond) {
  ProgressPace pace(false);
  EXPECT_TRUE(pace.is_due(at_step(0, 1000), 0));      // the first
  EXPECT_FALSE(pace.is_due(at_step(48, 1000), 2));    // no twentieth passed
  EXPECT_TRUE(pace.is_due(at_step(49, 1000), 2.1));   // 5 %
  EXPECT_FALSE(pace.is_due(at_step(99, 1000), 2.5));  // 10 %, but too soon
  EXPECT_TRUE(pace.is_due(at_step(120, 1000), 3.2));
  EXPECT_FALSE(pace.is_due(at_step(130, 1000), 13.1));
  EXPECT_TRUE(pace.is_due(at_step(131, 1000), 13.3));  // 10 s
  EXPECT_TRUE(pace.is_due(at_step(999, 1000), 13.4));  // the last
}

TEST(Progress, ATerminalIsWrittenTenTimesASecond) {
  ProgressPace pace(true);
  EXPECT_TRUE(pace.is_due(at_step(0, 1000), 0));
  EXPECT_FALSE(pace.is_due(at_step(500, 1000), 0.05));
  EXPECT_TRUE(pace.is_due(at_step(501, 1000), 0.1));
}

TEST(Progress, EventsComeEveryHundredStepsOrSecond) {
  EventPace pace;
  EXPECT_TRUE(pace.is_due(at_step(0, 1000), 0));
  EXPECT_FALSE(pace.is_due(at_step(99, 1000), 0.5));
  EXPECT_TRUE(pace.is_due(at_step(100, 1000), 0.6));
  EXPECT_TRUE(pace.is_due(at_step(101, 1000), 1.6));
  EXPECT_TRUE(pace.is_due(at_step(999, 1000), 1.7));
}

}  // namespace
}  // namespace millrace
