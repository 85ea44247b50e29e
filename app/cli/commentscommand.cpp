// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/commands.h"

#include "core/files/sha256.h"
#include "core/kernel/candidatetext.h"
#include "core/lineage/step.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace klineage::cli {

using nlohmann::json;

namespace {

/// Where the commented lines are now; nothing when the row or its file is no more.
std::optional<lineage::CommentSpot> spotNow(const lineage::Lineage &lineage,
                                            const lineage::CommentPlace &place)
{
    const auto row =
        lineage::findRow(lineage, place.side == lineage::StepSide::Before ? place.from : place.to);
    const Result<std::string> text =
        row ? kernel::readCandidateText(row->file) : fail(ErrorCode::NotFound, "no such row");
    if (!text)
        return std::nullopt;
    return lineage::findSpot(place, *text, files::sha256Hex(*text));
}

const char *spotName(const std::optional<lineage::CommentSpot> &spot)
{
    using Kind = lineage::CommentSpot::Kind;
    if (!spot)
        return "gone";
    return spot->kind == Kind::Same ? "same" : spot->kind == Kind::Moved ? "moved" : "changed";
}

json eventJson(const lineage::CommentEvent &event)
{
    return {{"id", event.id}, {"time", event.time}, {"author", event.author}, {"text", event.text}};
}

json threadJson(const lineage::Lineage &lineage, const lineage::CommentThread &thread)
{
    const lineage::CommentPlace &place = thread.comment.place;
    const auto spot = spotNow(lineage, place);
    json out = eventJson(thread.comment);
    out["from"] = place.from.empty() ? json() : json(place.from);
    out["to"] = place.to;
    out["side"] = lineage::toString(place.side);
    out["made_on"] = {{"sha256", place.sha}, {"first_line", place.firstLine}, {"last_line", place.lastLine}};
    out["excerpt"] = place.excerpt;
    out["now"] = {{"lines", spotName(spot)},
                  {"first_line", spot ? json(spot->firstLine) : json()},
                  {"last_line", spot ? json(spot->lastLine) : json()}};
    out["resolved_by"] = thread.isResolved ? json(thread.resolvedBy) : json();
    out["replies"] = json::array();
    for (const lineage::CommentEvent &reply : thread.replies)
        out["replies"].push_back(eventJson(reply));
    return out;
}

void printThread(const lineage::Lineage &lineage, const lineage::CommentThread &thread)
{
    const lineage::CommentPlace &place = thread.comment.place;
    const auto spot = spotNow(lineage, place);
    const bool isBefore = place.side == lineage::StepSide::Before;
    std::printf("%s%s, %s:%d", (place.from.empty() ? "" : place.from + " → ").c_str(), place.to.c_str(),
                (isBefore ? place.from : place.to).c_str(), spot ? spot->firstLine : place.firstLine);
    if (place.lastLine > place.firstLine)
        std::printf("–%d", spot ? spot->lastLine : place.lastLine);
    std::printf("%s%s\n", thread.isResolved ? (", resolved by " + thread.resolvedBy).c_str() : "",
                !spot                                               ? ", whose text is not here any more"
                : spot->kind == lineage::CommentSpot::Kind::Changed ? ", whose text has changed since"
                                                                    : "");
    std::printf("  %s, %s: %s\n", thread.comment.author.c_str(), thread.comment.time.c_str(),
                thread.comment.text.c_str());
    for (const lineage::CommentEvent &reply : thread.replies)
        std::printf("    %s, %s: %s\n", reply.author.c_str(), reply.time.c_str(), reply.text.c_str());
}

int comments(const Session &session, const std::vector<std::string> &keys)
{
    const auto lineages = chooseLineages(session, keys);
    if (!lineages)
        return lineages.error();
    json out{{"lineages", json::array()}};
    std::size_t count = 0;
    for (const lineage::Lineage &lineage : *lineages) {
        const std::vector<lineage::CommentThread> threads = lineage::threadsOf(lineage.comments);
        count += threads.size();
        json list = json::array();
        for (const lineage::CommentThread &thread : threads) {
            if (session.json())
                list.push_back(threadJson(lineage, thread));
            else
                printThread(lineage, thread);
        }
        out["lineages"].push_back({{"lineage", lineage.key()}, {"comments", std::move(list)}});
    }
    if (session.json())
        session.print(out);
    else if (count == 0)
        std::printf("Nobody has said anything about the code.\n");
    return exitOk;
}

} // namespace

void addCommentsCommand(CLI::App &group, Session &session)
{
    const auto keys = std::make_shared<std::vector<std::string>>();
    session
        .addVerb(group, "comments", "What people said about lines of the code, with replies",
                 [&session, keys] { return comments(session, *keys); })
        ->add_option("lineages", *keys, "WORKLOAD/PLATFORM … (default: all)");
}

} // namespace klineage::cli
