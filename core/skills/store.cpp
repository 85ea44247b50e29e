// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/store.h"
#include "core/base/random.h"

#include "core/files/atomicfile.h"
#include "core/files/filehandle.h"
#include "core/files/formatnumber.h"
#include "core/files/jsonlines.h"
#include "core/files/keptkeys.h"
#include "core/files/utctime.h"
#include "core/skills/cardlock.h"
#include "core/skills/logs.h"
#include "core/trial/trial.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fcntl.h>
#include <stdio.h>

// The order of writes, and what a kill between them leaves: core/skills/README.md, "reviews.jsonl".

namespace klineage::skills {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t maxCardBytes = std::size_t{1} << 20;

/// A card as its files are, with the event (if any) that a kill left ahead of card.toml.
struct Loaded {
    CardRecord record;
    std::string cardText;
    std::optional<Review> inFlight;
};

bool changesText(const Review &event)
{
    return !event.before.empty();
}

template <typename Record, typename Parse>
void readLog(const fs::path &path, std::vector<Record> &records, std::vector<std::string> &notices,
             Parse &&parse)
{
    const Result<files::Lines> lines = files::readLines(path);
    if (!lines) {
        if (lines.error().code != ErrorCode::NotFound)
            notices.push_back(lines.error().message);
        return;
    }
    const files::PassedOver passedOver;
    for (const files::Line &line : lines->lines) {
        Result<Record> record = parse(line.text, path.string() + ':' + std::to_string(line.number));
        if (record)
            records.push_back(std::move(*record));
        else
            notices.push_back("An event was left out: " + record.error().message);
    }
    if (std::string sentence = passedOver.sentence(path.filename().string()); !sentence.empty())
        notices.push_back(std::move(sentence));
    if (lines->tornTail)
        notices.push_back("Line " + std::to_string(lines->tornTail->number) + " of "
                          + path.filename().string()
                          + " was cut short, as by a kill while it was written, and was left out.");
}

/// Takes the event that is ahead of card.toml out of the record: it has not happened.
void separateInFlight(Loaded &loaded)
{
    std::vector<Review> &reviews = loaded.record.reviews;
    const auto last = std::find_if(reviews.rbegin(), reviews.rend(), changesText);
    if (last == reviews.rend() || last->cardRevision <= loaded.record.card.revision
        || loaded.record.revertedReviews().count(last->id) > 0)
        return;
    loaded.record.notices.push_back(std::string("The newest ") + toString(last->verdict) + " by "
                                    + last->author
                                    + " was interrupted before card.toml was written, and was left out.");
    loaded.inFlight = *last;
    reviews.erase(std::next(last).base());
}

Result<Loaded> load(const fs::path &directory)
{
    const fs::path path = directory / "card.toml";
    Result<std::string> text = files::readFile(path, maxCardBytes);
    if (!text)
        return tl::unexpected(text.error());
    const files::PassedOver passedOver;
    Result<Card> card = parseCard(*text, path.string());
    if (!card)
        return tl::unexpected(card.error());
    Loaded loaded;
    if (std::string sentence = passedOver.sentence("card.toml"); !sentence.empty())
        loaded.record.notices.push_back(std::move(sentence));
    loaded.cardText = std::move(*text);
    CardRecord &record = loaded.record;
    record.card = std::move(*card);
    record.directory = directory;
    if (record.card.name != directory.filename().string())
        return fail(ErrorCode::InvalidInput, path.string() + ": the card is named '" + record.card.name
                                                 + "'; expected the name of its folder, '"
                                                 + directory.filename().string() + "'.");
    if (!record.card.carrierFile.empty()) {
        Result<std::string> carrier = files::readFile(directory / record.card.carrierFile, maxCarrierBytes);
        if (carrier)
            record.carrier = std::move(*carrier);
        else
            record.notices.push_back(carrier.error().message);
    }
    if (!record.card.buildingBlockFile.empty()) {
        Result<std::string> block =
            files::readFile(directory / record.card.buildingBlockFile, maxCarrierBytes);
        if (block)
            record.buildingBlock = std::move(*block);
        else
            record.notices.push_back(block.error().message);
    }
    readLog(directory / "verification.jsonl", record.verifications, record.notices, parseVerification);
    readLog(directory / "reviews.jsonl", record.reviews, record.notices, parseReview);
    separateInFlight(loaded);
    return loaded;
}

bool isMarkdownCurrent(const CardRecord &record)
{
    const Result<std::string> text = files::readFile(record.directory / "SKILL.md", std::size_t{4} << 20);
    return text && *text == writeSkillMarkdown(record);
}

Status renewMarkdown(const CardRecord &record)
{
    if (isMarkdownCurrent(record))
        return {};
    return files::writeFileAtomic(record.directory / "SKILL.md", writeSkillMarkdown(record));
}

Status appendReview(const fs::path &directory, const Review &review)
{
    const std::string line = writeReview(review);
    if (const Result<Review> readable = parseReview(line, "the new event"); !readable)
        return tl::unexpected(readable.error());
    return files::appendLine(directory / "reviews.jsonl", line);
}

Review newEvent(ReviewVerdict verdict, std::string author, int cardRevision)
{
    Review event;
    event.id = randomId();
    event.time = files::nowUtc();
    event.author = std::move(author);
    event.cardRevision = cardRevision;
    event.verdict = verdict;
    return event;
}

const Review *findReview(const CardRecord &record, const std::string &id)
{
    const auto it = std::find_if(record.reviews.begin(), record.reviews.end(),
                                 [&](const Review &r) { return r.id == id; });
    return it == record.reviews.end() ? nullptr : &*it;
}

/// The text before a change can be written back only when nothing done since still shows in the text: of the later changes, those
/// are harmless that were taken back, together with what took them back.
Status checkRevertible(const CardRecord &record, const Review &target)
{
    const std::string &name = record.card.name;
    const std::set<std::string> reverted = record.revertedReviews();
    if (reverted.count(target.id) > 0)
        return fail(ErrorCode::Conflict,
                    "Event " + target.id + " of card '" + name + "' is taken back already.");
    const Review *partner =
        target.verdict == ReviewVerdict::Revert ? findReview(record, target.reverts) : nullptr;
    if (partner && changesText(*partner) && !changesText(target))
        return fail(ErrorCode::Conflict,
                    "Event " + partner->id + " of card '" + name
                        + "' was interrupted and its text is lost; make the edit again.");
    if (!changesText(target))
        return {};
    for (const Review *later = &target + 1; later != record.reviews.data() + record.reviews.size(); ++later) {
        const Review *cancelled =
            later->verdict == ReviewVerdict::Revert ? findReview(record, later->reverts) : nullptr;
        const bool shows =
            changesText(*later) && reverted.count(later->id) == 0 && (!cancelled || cancelled < &target);
        if (shows)
            return fail(ErrorCode::Conflict, "Card '" + name + "' was changed after event " + target.id
                                                 + "; take the later change (" + later->id + ") back first.");
    }
    return {};
}

/// Replaces card.toml; what the text before has that a newer format brought is kept.
Status rewriteCard(const fs::path &directory, const std::string &before, const Card &card)
{
    const files::PassedOver passedOver;
    std::string text = writeCard(card);
    if (parseCard(before, "card.toml") && !passedOver.keys().empty()) {
        Result<std::string> kept = files::withKeptKeys(before, text, passedOver);
        if (!kept)
            return fail(kept.error().code, (directory / "card.toml").string() + ": " + kept.error().message);
        text = std::move(*kept);
    }
    return files::writeFileAtomic(directory / "card.toml", text);
}

/// Finishes or takes back what a kill interrupted. Afterwards the files agree. The lock is held.
Status recover(const Loaded &loaded)
{
    const Review &event = *loaded.inFlight;
    const fs::path &directory = loaded.record.directory;
    const Review *target =
        event.verdict == ReviewVerdict::Revert ? findReview(loaded.record, event.reverts) : nullptr;
    const files::PassedOver passedOver; // rewriteCard() keeps what is there now
    Result<Card> restored = target ? parseCard(target->before, "card.toml") : fail(ErrorCode::NotFound, {});
    if (restored) {
        restored->revision = event.cardRevision;
        return rewriteCard(directory, loaded.cardText, *restored);
    }
    // The new text of an edit was never written anywhere.
    Review taken = newEvent(ReviewVerdict::Revert, "recovery", loaded.record.card.revision);
    taken.reverts = event.id;
    taken.reason = "It was interrupted before card.toml was written.";
    return appendReview(directory, taken);
}

/// What a writer starts from: the lock, and files that agree.
struct Session {
    CardLock lock;
    Loaded loaded;
};

Result<fs::path> cardDirectory(const fs::path &skills, const std::string &name)
{
    if (!isCardName(name))
        return fail(ErrorCode::InvalidInput,
                    "'" + name + "' is no card name; expected " + cardNameRule + '.');
    fs::path directory = skills / name;
    std::error_code ignored;
    if (!fs::is_directory(directory, ignored))
        return fail(ErrorCode::NotFound, "There is no card '" + name + "' in '" + skills.string() + "'.");
    return directory;
}

Result<Session> openForWriting(const fs::path &skills, const std::string &name)
{
    const Result<fs::path> directory = cardDirectory(skills, name);
    if (!directory)
        return tl::unexpected(directory.error());
    Result<CardLock> lock = CardLock::exclusive(*directory);
    if (!lock)
        return tl::unexpected(lock.error());
    Result<Loaded> loaded = load(*directory);
    if (!loaded)
        return tl::unexpected(loaded.error());
    if (loaded->inFlight) {
        if (Status recovered = recover(*loaded); !recovered)
            return tl::unexpected(recovered.error());
        loaded = load(*directory);
        if (!loaded)
            return tl::unexpected(loaded.error());
    }
    if (Status renewed = renewMarkdown(loaded->record); !renewed)
        return tl::unexpected(renewed.error());
    return Session{std::move(*lock), std::move(*loaded)};
}

/// The three writes of a change of the text, in their order.
Result<CardRecord> replaceCard(const Session &session, const Review &event, const Card &card)
{
    const fs::path directory = session.loaded.record.directory;
    if (Status appended = appendReview(directory, event); !appended)
        return tl::unexpected(appended.error());
    if (Status written = rewriteCard(directory, session.loaded.cardText, card); !written)
        return tl::unexpected(written.error());
    Result<Loaded> after = load(directory);
    if (!after)
        return tl::unexpected(after.error());
    if (Status renewed = renewMarkdown(after->record); !renewed)
        return tl::unexpected(renewed.error());
    return std::move(after->record);
}

} // namespace

CardStore::CardStore(fs::path skillsDirectory)
    : m_directory(std::move(skillsDirectory))
{}

std::vector<CardRecord> CardStore::readAll(std::vector<Error> *problems) const
{
    std::vector<std::string> names;
    std::error_code problem;
    for (fs::directory_iterator it(m_directory, problem), end; !problem && it != end; it.increment(problem)) {
        const std::string name = it->path().filename().string();
        std::error_code ignored;
        if (isCardName(name) && it->is_directory(ignored))
            names.push_back(name);
    }
    if (problem && problems)
        problems->push_back(
            {ErrorCode::Io, "Cannot list '" + m_directory.string() + "': " + problem.message() + '.', {}});
    std::sort(names.begin(), names.end());
    std::vector<CardRecord> records;
    for (const std::string &name : names) {
        Result<CardRecord> record = read(name);
        if (record)
            records.push_back(std::move(*record));
        else if (problems)
            problems->push_back(record.error());
    }
    return records;
}

Result<CardRecord> CardStore::read(const std::string &name) const
{
    const Result<fs::path> directory = cardDirectory(m_directory, name);
    if (!directory)
        return tl::unexpected(directory.error());
    const CardLock lock = CardLock::shared(*directory);
    Result<Loaded> loaded = load(*directory);
    if (!loaded)
        return tl::unexpected(loaded.error());
    if (!isMarkdownCurrent(loaded->record))
        loaded->record.notices.push_back(
            "SKILL.md is not what card.toml and the logs say; the next change renews it.");
    return std::move(loaded->record);
}

Result<Review> CardStore::review(const std::string &name, Review review) const
{
    if (review.verdict == ReviewVerdict::Edit || review.verdict == ReviewVerdict::Revert)
        return fail(ErrorCode::InvalidInput, "An edit or a revert is no review: use save() or revert().");
    if (review.author.empty())
        return fail(ErrorCode::InvalidInput, "A review needs its author.");
    const Result<Session> session = openForWriting(m_directory, name);
    if (!session)
        return tl::unexpected(session.error());
    const int revision = session->loaded.record.card.revision;
    if (review.cardRevision != 0 && review.cardRevision != revision)
        return fail(ErrorCode::Conflict, "The review is of revision " + std::to_string(review.cardRevision)
                                             + " of '" + name + "', but the card is at revision "
                                             + std::to_string(revision) + " now; look at it again.");
    Review event = newEvent(review.verdict, review.author, revision);
    event.reason = review.reason;
    if (Status appended = appendReview(session->loaded.record.directory, event); !appended)
        return tl::unexpected(appended.error());
    return event;
}

Result<Review> CardStore::revert(const std::string &name, const std::string &reviewId,
                                 const std::string &author) const
{
    if (author.empty())
        return fail(ErrorCode::InvalidInput, "A revert needs its author.");
    const Result<Session> session = openForWriting(m_directory, name);
    if (!session)
        return tl::unexpected(session.error());
    const CardRecord &record = session->loaded.record;
    const Review *target = findReview(record, reviewId);
    if (!target)
        return fail(ErrorCode::NotFound, "Card '" + name + "' has no event '" + reviewId + "'.");
    if (Status allowed = checkRevertible(record, *target); !allowed)
        return tl::unexpected(allowed.error());

    Review event = newEvent(ReviewVerdict::Revert, author, record.card.revision);
    event.reverts = reviewId;
    if (!changesText(*target)) {
        if (Status appended = appendReview(record.directory, event); !appended)
            return tl::unexpected(appended.error());
        return event;
    }
    const files::PassedOver passedOver; // replaceCard() keeps what is there now
    Result<Card> restored = parseCard(target->before, "the text before event " + reviewId);
    if (!restored)
        return tl::unexpected(restored.error());
    restored->revision = record.card.revision + 1;
    event.cardRevision = restored->revision;
    event.before = session->loaded.cardText;
    const Result<CardRecord> after = replaceCard(*session, event, *restored);
    if (!after)
        return tl::unexpected(after.error());
    return event;
}

Result<CardRecord> CardStore::save(const Card &card, const std::string &author,
                                   const std::string &reason) const
{
    if (author.empty())
        return fail(ErrorCode::InvalidInput, "An edit needs its author.");
    const Result<Session> session = openForWriting(m_directory, card.name);
    if (!session)
        return tl::unexpected(session.error());
    const CardRecord &record = session->loaded.record;
    if (card.revision != record.card.revision)
        return fail(ErrorCode::Conflict, "The edit is of revision " + std::to_string(card.revision) + " of '"
                                             + card.name + "', but the card is at revision "
                                             + std::to_string(record.card.revision)
                                             + " now; read it again and redo the edit.");
    if (card == record.card)
        return record;
    Card next = card;
    next.revision = card.revision + 1;
    if (const Result<Card> readable = parseCard(writeCard(next), "the edited card"); !readable)
        return tl::unexpected(readable.error());
    Review event = newEvent(ReviewVerdict::Edit, author, next.revision);
    event.reason = reason;
    event.before = session->loaded.cardText;
    return replaceCard(*session, event, next);
}

Result<CardRecord> CardStore::create(const Card &card, std::string_view carrier,
                                     std::string_view buildingBlock) const
{
    if (const Result<Card> readable = parseCard(writeCard(card), "the new card"); !readable)
        return tl::unexpected(readable.error());
    const fs::path directory = m_directory / card.name;
    // Filled under another name and renamed: a kill leaves a whole card or none.
    const fs::path draft = m_directory / (".new-" + card.name + '-' + randomId());
    std::error_code problem;
    if (fs::exists(directory, problem))
        return fail(ErrorCode::Conflict, "There is a card '" + card.name + "' already.");
    fs::create_directories(draft, problem);
    if (problem)
        return fail(ErrorCode::Io, "Cannot create '" + draft.string() + "': " + problem.message() + '.');

    CardRecord record;
    record.card = card;
    record.carrier = carrier;
    record.buildingBlock = buildingBlock;
    record.directory = draft;
    Status written = files::writeFileAtomic(draft / "card.toml", writeCard(card));
    if (written && !card.carrierFile.empty())
        written = files::writeFileAtomic(draft / card.carrierFile, carrier);
    if (written && !card.buildingBlockFile.empty())
        written = files::writeFileAtomic(draft / card.buildingBlockFile, buildingBlock);
    if (written)
        written = files::writeFileAtomic(draft / "SKILL.md", writeSkillMarkdown(record));
    if (written && ::renameat2(AT_FDCWD, draft.c_str(), AT_FDCWD, directory.c_str(), RENAME_NOREPLACE) != 0)
        written = files::systemError("create the card", directory, errno);
    if (written)
        written = files::syncFolder(m_directory);
    if (!written) {
        fs::remove_all(draft, problem);
        return tl::unexpected(written.error());
    }
    return read(card.name);
}

Status CardStore::appendVerification(const std::string &name, const Verification &verification) const
{
    const Result<Session> session = openForWriting(m_directory, name);
    if (!session)
        return tl::unexpected(session.error());
    const fs::path directory = session->loaded.record.directory;
    const std::string line = writeVerification(verification);
    if (const Result<Verification> readable = parseVerification(line, "the new verification"); !readable)
        return tl::unexpected(readable.error());
    if (Status appended = files::appendLine(directory / "verification.jsonl", line); !appended)
        return appended;
    const Result<Loaded> after = load(directory);
    return after ? renewMarkdown(after->record) : Status(tl::unexpected(after.error()));
}

} // namespace klineage::skills
