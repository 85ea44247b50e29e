// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/comments.h"
#include "tests/fuzz/target.h"

using namespace klineage;
using namespace klineage::lineage;

namespace {

const std::string commented = "float a;\n\tfloat b;\n}\n\n}\n\xffno UTF-8\n";

CommentEvent comment()
{
    CommentEvent event{
        "0123456789abcdef", "2026-01-02T03:04:05Z", "Ada", CommentKind::Comment, "", "why?", {}};
    event.place = placeInText(commented, 2, 3).value();
    event.place.from = "K00";
    event.place.to = "K01";
    return event;
}

} // namespace

FuzzTarget fuzzTarget()
{
    const CommentEvent reply{"0123456789abcde0",
                             "2026-01-02T03:04:06Z",
                             "Grace",
                             CommentKind::Reply,
                             "0123456789abcdef",
                             "so",
                             {}};
    CommentEvent undo = reply;
    undo.kind = CommentKind::Revert;
    undo.text.clear();
    FuzzTarget target;
    target.seeds = {writeComment(comment()), writeComment(reply), writeComment(undo)};
    target.words = {"{",          "}",          "\"",           ":",        ",",          "null",
                    "-1",         "2147483647", "1e99",         "\"from\"", "\"before\"", "\"resolve\"",
                    "\"reopen\"", "\"about\":", "\"excerpt\":", "\\u0000",  "\xff"};
    target.runs = 8'000;
    return target;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string_view line(reinterpret_cast<const char *>(data), size);
    const Result<CommentEvent> event = parseComment(line, "fuzz.jsonl:1");
    if (!event) {
        requireLocated(event.error(), "fuzz.jsonl:1:");
        return 0;
    }
    const Result<CommentEvent> again = parseComment(writeComment(*event), "written");
    require(again && writeComment(*again) == writeComment(*event), "writing and reading keep the event");
    const std::vector<CommentThread> threads = threadsOf({comment(), *event, *event});
    require(threads.size() <= 2, "an event is one thread at most, however often it stands there");
    if (event->kind != CommentKind::Comment)
        return 0;
    for (const std::string_view in : {std::string_view(commented), std::string_view(), line}) {
        const CommentSpot spot = findSpot(event->place, in);
        require(spot.firstLine >= 1 && spot.lastLine >= spot.firstLine, "a spot is lines");
        require(spot.kind == CommentSpot::Kind::Changed
                    || placeInText(in, spot.firstLine, spot.lastLine).has_value(),
                "lines that are found are there");
    }
    return 0;
}
