// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/utf8text.h"
#include "core/interop/archives/ancestry.h"
#include "core/interop/archives/formats/readers.h"
#include "core/interop/archives/programfile.h"
#include "tests/fuzz/target.h"

using namespace klineage;
using namespace klineage::interop;

FuzzTarget fuzzTarget()
{
    FuzzTarget target;
    target.seeds = {
        R"({"id":"a","code":"__kernel void k(){}","language":"opencl","parent_id":"b","generation":3,)"
        R"("metrics":{"combined_score":1.5,"x":NaN},"metadata":{"island":1,"changes":"c\nd"}})",
        R"({"id":"b","code":"import triton\n","parent_id":"a","metrics":{"y":-Infinity,"z":2}})",
        R"({"best_program_id":"a","islands":[["a","b"],[]]})",
        R"({"node_id":1,"parent_node_id":0,"depth":2,"created_by":"small_step","global_best_node_id":1})",
        R"({"compiled":true,"correctness":false,"runtime":2.5,"runtime_stats":{"fast_p":1.5}})"};
    target.words = {"\"id\"",  "\"code\"",   "\"parent_id\"", "\"metrics\"", "\"node_id\"",
                    "null",    "NaN",        "Infinity",      "1e999",       "-1",
                    "\\u0000", "\\ud800",    "\xff",          "[[[[",        "{\"a\":",
                    "true",    "/*klineage", "\"\"\"",        "__global__",  "__kernel"};
    target.runs = 6'000;
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char *>(data), size);
    const auto check = [](const ArchivedProgram &program) {
        require(!program.id.empty() && program.id.size() <= maxProgramIdBytes, "an id within its limit");
        require(files::isUtf8Text(program.id) && files::isUtf8Text(program.parent), "ids are texts");
        require(program.leftOut.empty() || program.code.empty(), "what is left out has no code");
        require(files::isUtf8Text(program.code) && files::isUtf8Text(program.change), "texts are texts");
        static_cast<void>(surfaceOf(program));
    };
    Archive archive;
    if (const auto program = parseOpenEvolveProgram(text, "it")) {
        check(*program);
        archive.programs = {*program, *program};
        archive.programs.back().id = program->parent;
        archive.programs.back().parent = program->id;
        Ancestry ancestry(archive);
        const int best = ancestry.best();
        ancestry.joinCopies();
        require(best == Ancestry::none || !ancestry.pathTo(best).empty(), "a path has an end");
    } else {
        requireLocated(program.error(), "it");
    }
    static_cast<void>(parseOpenEvolveMetadata(text, "it"));
    if (const auto step = parseAdaExploreStep(text, text, "it"))
        check(step->program);
    else
        requireLocated(step.error(), "it");
    return 0;
}
