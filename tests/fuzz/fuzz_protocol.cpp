// SPDX-License-Identifier: GPL-3.0-or-later
//
// Messages of a worker, which is not trusted: reading gives a value that can be written again, or throws a std::exception.
#include "core/device/worker/codec.h"
#include "tests/fuzz/target.h"

using namespace klineage;
using namespace klineage::gate;
using nlohmann::json;

namespace {

template <typename Read>
void roundTrip(const json &message, const char *key, Read read)
{
    if (!message.contains(key))
        return;
    try {
        const json written = protocol::write(read(message.at(key)));
        require(protocol::write(read(written)) == written, "writing and reading keep the message");
    } catch (const std::exception &) { // every caller ends the session then
    }
}

} // namespace

FuzzTarget fuzzTarget()
{
    FuzzTarget target;
    target.seeds = {
        json{{"facts", protocol::write(kernel::Bindings{{"sm_count", std::int64_t{132}}, {"scale", 0.5}})},
             {"environment", protocol::write(Environment{"sm90", "a device", {{"driver", "580"}}})}}
            .dump(),
        json{{"metrics", protocol::write(std::vector<Metric>{{"registers", 128, "", "gemm"}})},
             {"compile",
              protocol::write(CompileOutput{true, "log", {}, {{"spills", 4, "B", "k"}}, "nvrtc 13.0"})}}
            .dump(),
        json{{"sample", protocol::write(TimedSample{1500.5, 1980, {}, BufferBinding{3, 4096}})},
             {"run", protocol::write(TimedRun{3, 1, 48, 0x7ff17ff1u, false, 7, 50, {{1, 0, 2, 4096, 64}}})},
             {"error", protocol::write(Error{ErrorCode::InvalidInput, "No.", "detail"})}}
            .dump(),
        R"({"run":[3,1,48,2146533333333333333350,false,7,50,[[1,0,2,4096,64]]]})",
        json{{"sets", protocol::write(std::vector<BufferSet>{{{"a", {1, 4096}}, {"b", {2, 4096}}}})},
             {"fills", protocol::write(FillSets{{{1, 4096, 64}}, {}})},
             {"ranges",
              protocol::write(std::vector<CopyRange>{{1, 0, 2, 4096, 64}, {1, 0, 2, 4096, 64, 3, {}}})},
             {"call", protocol::write(ReferenceCall{"cublas", "gemm_nt", {{"a", "x"}}, {{"m", 4}}})}}
            .dump(),
    };
    target.words = {"{",    "}",    "[",       "]",          "\"",     ":",           ",",
                    "null", "true", "1e999",   "-1",         "1e-320", "4294967296",  "18446744073709551616",
                    "\"\"", "\xff", "\\ud800", "\"facts\":", "[[[[[[", "\"sample\":", "9223372036854775808"};
    target.runs = 20'000;
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const json message = json::parse(data, data + size, nullptr, false);
    if (!message.is_object())
        return 0;
    roundTrip(message, "facts", protocol::decode<kernel::Bindings>);
    roundTrip(message, "environment", protocol::decode<Environment>);
    roundTrip(message, "metrics", protocol::decode<std::vector<Metric>>);
    roundTrip(message, "compile", protocol::decode<CompileOutput>);
    roundTrip(message, "sample", protocol::decode<TimedSample>);
    roundTrip(message, "run", protocol::decode<TimedRun>);
    roundTrip(message, "sets", protocol::decode<std::vector<BufferSet>>);
    roundTrip(message, "fills", protocol::decode<FillSets>);
    roundTrip(message, "ranges", protocol::decode<std::vector<CopyRange>>);
    roundTrip(message, "call", protocol::decode<ReferenceCall>);
    roundTrip(message, "error", protocol::decode<Error>);
    roundTrip(message, "plan", protocol::decode<kernel::ResolvedPlan>);
    return 0;
}
