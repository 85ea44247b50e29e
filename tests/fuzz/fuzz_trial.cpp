// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/trial.h"
#include "tests/fuzz/target.h"

#include <sstream>

using namespace klineage;
using namespace klineage::gate;

namespace {

std::string fullTrial()
{
    Trial trial;
    trial.id = "0123456789abcdef";
    trial.time = "2026-01-02T03:04:05Z";
    trial.workload = "gemm";
    trial.candidate = std::string(64, 'a');
    trial.file = "K01.cl";
    trial.parent = std::string(64, 'b');
    trial.tunables = {{"BM", 128}};
    trial.seeds = {1, 18446744073709551615u};
    trial.environment = {"pocl", "cpu", {{"driver", "3.1"}}};
    trial.verdict.reason = "ok";
    trial.verdict.evidence = {{"case", "odd"}};
    trial.verdict.comparisons.push_back({});
    trial.verdict.comparisons.back().against = "parent";
    trial.verdict.comparisons.back().subject = std::string(64, 'b');
    trial.verdict.comparisons.back().speedup = {1.5, 1.4, 1.6};
    trial.latencyNs = {1000, 990, 1010};
    trial.metrics = {{"registers", 128, "", "gemm"}};
    trial.samples = {{"candidate", {1000, 1001.5}}};
    trial.gateVersion = "0.1.0";
    return writeTrial(trial);
}

} // namespace

FuzzTarget fuzzTarget()
{
    FuzzTarget target;
    target.seeds = {fullTrial()};
    target.seedFiles = {"trials.jsonl"};
    target.cut = [](const std::string &text) {
        // Thousands of raw samples are all alike, and make a mutation of one slow.
        constexpr std::size_t longest = 16'000;
        std::vector<std::string> lines;
        std::istringstream stream(text);
        for (std::string line; lines.size() < 10 && std::getline(stream, line);) {
            if (line.size() <= longest)
                lines.push_back(line);
        }
        return lines;
    };
    target.words = {"{",       "}",           "[",         "]",        "\"",
                    ":",       ",",           "null",      "true",     "1e999",
                    "-1",      "\"correct\"", "\"wrong\"", "\"low\":", "\"seeds\":[",
                    "\\u0000", "\\ud800",     "\"id\":",   "\xff",     "18446744073709551616"};
    target.runs = 8'000;
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const Result<Trial> trial = parseTrial({reinterpret_cast<const char *>(data), size}, "fuzz.jsonl:1");
    if (!trial) {
        requireLocated(trial.error(), "fuzz.jsonl:1:");
        return 0;
    }
    const std::string written = writeTrial(*trial);
    require(written.find('\n') == std::string::npos, "a trial is one line");
    const Result<Trial> again = parseTrial(written, "written");
    require(again.has_value(), "what is written can be read");
    require(writeTrial(*again) == written, "writing and reading keep the trial");
    return 0;
}
