// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/backend.h"
#include "core/device/counters/hotspots.h"
#include "core/device/counters/pcsampler.h"

#include <QTest>

#include <set>

using namespace klineage;
using namespace klineage::gate;
using namespace klineage::gate::counters;

namespace {

const char *const source = R"(// line 1
#include <cuda_bf16.h>

extern "C" __global__ void scale(const __nv_bfloat16 *in, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x; // line 6
    if (i >= n)
        return;
    float value = __bfloat162float(in[i]);
    for (int k = 0; k < n; ++k)
        value = value * 1.0001f + out[k]; // line 11
    out[i] = value;
}
)";

} // namespace

class TestHotspots : public QObject
{
    Q_OBJECT

private slots:
    void linesAreMergedAndRanked()
    {
        const std::vector<ListedInstruction> samples = {{"a", 0x10, 7, 5, {{"wait", 5}}, ""},
                                                        {"b", 0x10, 7, 6, {}, ""},
                                                        {"a", 0x20, 7, 4, {{"wait", 1}, {"barrier", 3}}, ""},
                                                        {"a", 0x30, 9, 0, {}, ""},
                                                        {"a", 0x40, 0, 1, {{"selected", 1}}, ""}};
        const auto ranked = rankHotspots(samples);
        QCOMPARE(ranked.size(), std::size_t{3});
        QCOMPARE(ranked[0].samples, std::int64_t{9});
        QCOMPARE(ranked[0].stalls, (std::map<std::string, std::int64_t>{{"barrier", 3}, {"wait", 6}}));
        QCOMPARE(ranked[1].kernel, std::string("b"));
        QCOMPARE(ranked[2].line, 0);
        QCOMPARE(rankHotspots(samples, 1).size(), std::size_t{1});
    }

    void reasonsHaveShortNames()
    {
        QCOMPARE(stallReason("smsp__pcsamp_warps_issue_stalled_long_scoreboard"),
                 std::string("long_scoreboard"));
        QCOMPARE(stallReason("smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued"), std::string());
        QCOMPARE(stallReason("smsp__pcsamp_sample_buffer_full"), std::string());
    }

    void instructionsLeadToLines()
    {
        const auto compiled = compileCuda(source, "scale.cu", {}, "sm_90a");
        if (!compiled)
            QSKIP(compiled.error().message.c_str());
        QVERIFY2(compiled->ok, compiled->log.c_str());
        std::set<int> lines;
        for (std::uint64_t pc = 0; pc < 0x1000; pc += 16) {
            const auto line = sourceLine(compiled->binary, "scale", pc);
            if (!line)
                QSKIP(line.error().message.c_str());
            QVERIFY(*line >= 0 && *line <= 13);
            lines.insert(*line);
        }
        QVERIFY(lines.contains(6));
        QVERIFY(lines.contains(11));
        QVERIFY(lines.contains(12));
        QCOMPARE(sourceLine(compiled->binary, "no_such_kernel", 0).value_or(-1), 0);
    }
};

QTEST_GUILESS_MAIN(TestHotspots)
#include "tst_hotspots.moc"
