// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/comments.h"

#include "core/base/random.h"
#include "core/base/suggest.h"
#include "core/files/formatnumber.h"
#include "core/files/jsonlines.h"
#include "core/files/jsonreader.h"
#include "core/files/jsontext.h"
#include "core/files/sha256.h"
#include "core/files/utctime.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>

namespace klineage::lineage {

using files::JsonReader;
using files::OrderedJson;
using nlohmann::json;

namespace {

constexpr const char *commentsFile = "comments.jsonl";
constexpr std::array commentKinds{CommentKind::Comment, CommentKind::Reply, CommentKind::Resolve,
                                  CommentKind::Reopen, CommentKind::Revert};
constexpr std::size_t maxHashedBytes = std::size_t{16} << 20; // of a search for lines that moved

bool hasText(CommentKind kind)
{
    return kind == CommentKind::Comment || kind == CommentKind::Reply;
}

/// A final newline starts no other line.
std::vector<std::string_view> commentLines(std::string_view text)
{
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        lines.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

std::string digestOf(const std::vector<std::string_view> &lines, std::size_t first, std::size_t count)
{
    files::Sha256 hash;
    for (std::size_t i = first; i < first + count; ++i) {
        hash.update(lines[i]);
        hash.update("\n");
    }
    constexpr const char *digits = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t byte : hash.finish()) {
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

/// Cut between two characters.
std::string excerptOf(const std::vector<std::string_view> &lines, std::size_t first, std::size_t count)
{
    std::string text;
    for (std::size_t i = first; i < first + count && text.size() <= maxExcerptBytes; ++i)
        text += (i == first ? "" : "\n") + std::string(lines[i].substr(0, maxExcerptBytes + 1));
    if (text.size() > maxExcerptBytes) {
        std::size_t end = maxExcerptBytes;
        while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u)
            --end;
        text.resize(end);
    }
    return text;
}

template <typename Enum, std::size_t count>
Enum readWord(JsonReader &reader, const char *key, const std::array<Enum, count> &values)
{
    const std::string name = reader.text(key, 64);
    std::vector<std::string> known;
    for (const Enum value : values) {
        if (name == toString(value))
            return value;
        known.emplace_back(toString(value));
    }
    reader.refuse(key, "is '" + name + "'; expected " + quotedList(known) + didYouMean(name, known));
}

int readLine(JsonReader &reader, const char *key, int least)
{
    const std::int64_t line = reader.integer(key);
    if (line < least || line > std::numeric_limits<int>::max())
        reader.refuse(key, "is " + std::to_string(line) + "; a line from " + std::to_string(least)
                               + " was expected");
    return static_cast<int>(line);
}

std::string readDigest(JsonReader &reader, const char *key)
{
    const std::string digest = reader.text(key, 64);
    if (!files::isSha256Hex(digest))
        reader.refuse(key, "is no sha-256: 64 digits of 0-9 and a-f were expected");
    return digest;
}

CommentPlace readPlace(JsonReader &reader)
{
    CommentPlace place;
    place.from = reader.optionalText("from", 256);
    place.to = reader.text("to", 256);
    place.side = readWord(reader, "side", std::array{StepSide::Before, StepSide::After});
    place.sha = readDigest(reader, "sha256");
    place.firstLine = readLine(reader, "first_line", 1);
    place.lastLine = readLine(reader, "last_line", place.firstLine);
    if (place.lastLine - place.firstLine >= maxCommentedLines)
        reader.refuse("last_line", "makes more than " + std::to_string(maxCommentedLines) + " lines");
    place.textSha = readDigest(reader, "text_sha256");
    place.excerpt = reader.optionalText("excerpt", 4 * maxExcerptBytes);
    if (place.to.empty())
        reader.refuse("to", "is empty");
    if (place.side == StepSide::Before && place.from.empty())
        reader.refuse("side", "is 'before', but nothing stands before: 'from' is missing");
    return place;
}

/// Of the events, those that a standing Revert takes back. Only what comes later takes back.
std::set<std::string> takenBack(const std::vector<CommentEvent> &events)
{
    std::set<std::string> gone;
    for (auto event = events.rbegin(); event != events.rend(); ++event) {
        if (event->kind == CommentKind::Revert && gone.count(event->id) == 0)
            gone.insert(event->about);
    }
    return gone;
}

Status checkAbout(const std::vector<CommentEvent> &events, const CommentEvent &event)
{
    const auto target = std::find_if(events.begin(), events.end(),
                                     [&](const CommentEvent &other) { return other.id == event.about; });
    const bool fits =
        target != events.end() && (event.kind == CommentKind::Revert || target->kind == CommentKind::Comment);
    if (!fits)
        return fail(ErrorCode::NotFound, "There is no comment '" + event.about + "' in this lineage.");
    if (takenBack(events).count(event.about) > 0)
        return fail(ErrorCode::Conflict, "The comment '" + event.about + "' is taken back already.");
    return {};
}

} // namespace

const char *toString(StepSide side)
{
    return side == StepSide::Before ? "before" : "after";
}

const char *toString(CommentKind kind)
{
    switch (kind) {
    case CommentKind::Comment:
        return "comment";
    case CommentKind::Reply:
        return "reply";
    case CommentKind::Resolve:
        return "resolve";
    case CommentKind::Reopen:
        return "reopen";
    case CommentKind::Revert:
        return "revert";
    }
    return "";
}

std::string writeComment(const CommentEvent &event)
{
    OrderedJson out{
        {"id", event.id}, {"time", event.time}, {"author", event.author}, {"kind", toString(event.kind)}};
    files::setUnlessEmpty(out, "about", event.about);
    files::setUnlessEmpty(out, "text", event.text);
    if (event.kind == CommentKind::Comment) {
        const CommentPlace &place = event.place;
        files::setUnlessEmpty(out, "from", place.from);
        out["to"] = place.to;
        out["side"] = toString(place.side);
        out["sha256"] = place.sha;
        out["first_line"] = place.firstLine;
        out["last_line"] = place.lastLine;
        out["text_sha256"] = place.textSha;
        files::setUnlessEmpty(out, "excerpt", place.excerpt);
    }
    return files::oneLine(out);
}

Result<CommentEvent> parseComment(std::string_view line, const std::string &where)
{
    return files::parseJsonLine(line, where, [](const json &value) {
        JsonReader reader(value, {});
        CommentEvent event;
        event.id = reader.text("id", 256);
        event.time = reader.text("time", 256);
        event.author = reader.text("author", 1024);
        event.kind = readWord(reader, "kind", commentKinds);
        event.about = reader.optionalText("about", 256);
        event.text = reader.optionalText("text", maxCommentBytes);
        if (event.kind == CommentKind::Comment)
            event.place = readPlace(reader);
        reader.finish();
        if (event.id.empty())
            reader.refuse("id", "is empty");
        if ((event.kind == CommentKind::Comment) != event.about.empty())
            reader.refuse("kind", "and 'about' do not fit: all but a comment name what they are about");
        if (hasText(event.kind) == event.text.empty())
            reader.refuse("kind",
                          "and 'text' do not fit: a comment and a reply, and only they, say something");
        return event;
    });
}

Result<CommentPlace> placeInText(std::string_view text, int firstLine, int lastLine)
{
    const std::vector<std::string_view> lines = commentLines(text);
    if (firstLine < 1 || lastLine < firstLine || lastLine > static_cast<int>(lines.size()))
        return fail(ErrorCode::InvalidInput, "The text has no lines " + std::to_string(firstLine) + " to "
                                                 + std::to_string(lastLine) + "; it has "
                                                 + std::to_string(lines.size()) + '.');
    if (lastLine - firstLine >= maxCommentedLines)
        return fail(ErrorCode::InvalidInput,
                    "A comment is on at most " + std::to_string(maxCommentedLines) + " lines; choose fewer.");
    const auto first = static_cast<std::size_t>(firstLine - 1);
    const auto count = static_cast<std::size_t>(lastLine - firstLine + 1);
    CommentPlace place;
    place.sha = files::sha256Hex(text);
    place.firstLine = firstLine;
    place.lastLine = lastLine;
    place.textSha = digestOf(lines, first, count);
    place.excerpt = excerptOf(lines, first, count);
    return place;
}

CommentSpot findSpot(const CommentPlace &place, std::string_view text, std::string_view sha)
{
    const std::vector<std::string_view> lines = commentLines(text);
    const int total = static_cast<int>(lines.size());
    const int count = place.lastLine - place.firstLine + 1;
    CommentSpot spot{CommentSpot::Kind::Changed, std::clamp(place.firstLine, 1, std::max(1, total)),
                     std::clamp(place.lastLine, 1, std::max(1, total))};
    if (!sha.empty() && sha == place.sha && place.lastLine <= total) {
        spot.kind = CommentSpot::Kind::Same;
        return spot;
    }
    const std::string_view excerpt(place.excerpt);
    const std::string_view beginning = excerpt.substr(0, excerpt.find('\n'));
    std::size_t hashed = 0;
    const auto isHere = [&](int firstLine) {
        if (firstLine < 1 || firstLine + count - 1 > total)
            return false;
        const auto first = static_cast<std::size_t>(firstLine - 1);
        if (!lines[first].starts_with(beginning) || hashed > maxHashedBytes)
            return false;
        for (int i = 0; i < count; ++i)
            hashed += lines[first + static_cast<std::size_t>(i)].size() + 1;
        return digestOf(lines, first, static_cast<std::size_t>(count)) == place.textSha;
    };
    // Lines of a text of 2^31 − 1 bytes at most: no sum overflows.
    for (int distance = 0; distance < std::max(total, 1); ++distance) {
        for (const int firstLine : {spot.firstLine - distance, spot.firstLine + distance}) {
            if (isHere(firstLine))
                return {firstLine == place.firstLine ? CommentSpot::Kind::Same : CommentSpot::Kind::Moved,
                        firstLine, firstLine + count - 1};
        }
    }
    return spot;
}

std::vector<CommentThread> threadsOf(const std::vector<CommentEvent> &events)
{
    const std::set<std::string> gone = takenBack(events);
    std::vector<CommentThread> threads;
    std::map<std::string, std::size_t> places; // in threads
    for (const CommentEvent &event : events) {
        if (gone.count(event.id) > 0 || event.kind == CommentKind::Revert)
            continue;
        if (event.kind == CommentKind::Comment) {
            if (places.emplace(event.id, threads.size()).second)
                threads.push_back({event, {}, false, {}});
            continue;
        }
        const auto found = places.find(event.about);
        if (found == places.end())
            continue;
        CommentThread &thread = threads[found->second];
        if (event.kind == CommentKind::Reply) {
            thread.replies.push_back(event);
        } else {
            thread.isResolved = event.kind == CommentKind::Resolve;
            thread.resolvedBy = thread.isResolved ? event.author : std::string();
        }
    }
    return threads;
}

std::vector<CommentThread> threadsOn(const std::vector<CommentEvent> &events, std::string_view from,
                                     std::string_view to)
{
    std::vector<CommentThread> threads = threadsOf(events);
    std::erase_if(threads, [&](const CommentThread &thread) {
        return thread.comment.place.from != from || thread.comment.place.to != to;
    });
    return threads;
}

std::vector<CommentEvent> readComments(const std::filesystem::path &lineageDirectory,
                                       std::vector<std::string> &notices)
{
    const std::filesystem::path path = lineageDirectory / commentsFile;
    const Result<files::Lines> lines = files::readLines(path);
    if (!lines) {
        if (lines.error().code != ErrorCode::NotFound)
            notices.push_back(lines.error().message);
        return {};
    }
    std::vector<CommentEvent> events;
    const files::PassedOver passedOver;
    for (const files::Line &line : lines->lines) {
        if (events.size() == maxCommentEvents) {
            notices.push_back("Line " + std::to_string(line.number)
                              + " of comments.jsonl and what follows were left out: at most "
                              + std::to_string(maxCommentEvents) + " events are read.");
            break;
        }
        Result<CommentEvent> event =
            parseComment(line.text, path.string() + ':' + std::to_string(line.number));
        if (event)
            events.push_back(std::move(*event));
        else
            notices.push_back("A comment was left out: " + event.error().message);
    }
    if (std::string sentence = passedOver.sentence("comments.jsonl"); !sentence.empty())
        notices.push_back(std::move(sentence));
    if (lines->tornTail)
        notices.push_back(
            "Line " + std::to_string(lines->tornTail->number)
            + " of comments.jsonl was cut short, as by a kill while it was written, and was left out.");
    return events;
}

Result<CommentEvent> appendComment(const std::filesystem::path &lineageDirectory, CommentEvent event)
{
    if (event.author.empty())
        return fail(ErrorCode::InvalidInput, "A comment needs its author.");
    if (event.kind != CommentKind::Comment) {
        std::vector<std::string> notices;
        if (Status there = checkAbout(readComments(lineageDirectory, notices), event); !there)
            return tl::unexpected(there.error());
    }
    event.id = randomId();
    event.time = files::nowUtc();
    const std::string line = writeComment(event);
    // A line is never changed, so what could not be read again must not get in.
    const Result<CommentEvent> readable = parseComment(line, "the new comment");
    if (!readable)
        return tl::unexpected(readable.error());
    if (Status appended = files::appendLine(lineageDirectory / commentsFile, line); !appended)
        return tl::unexpected(appended.error());
    return *readable;
}

} // namespace klineage::lineage
