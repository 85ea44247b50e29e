// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/atomicfile.h"
#include "core/skills/logs.h"
#include "core/skills/revisions.h"
#include "core/skills/store.h"
#include "tests/core/trialfixture.h"

#include <QTest>

#include <fstream>
#include <set>

#include <sys/wait.h>
#include <unistd.h>

using namespace klineage;
using namespace klineage::skills;
using namespace klineage::tests;

namespace {

const std::string name = "stage-rows";

CardRecord mustRead(const CardStore &store)
{
    Result<CardRecord> record = store.read(name);
    if (!record)
        qFatal("%s", record.error().message.c_str());
    return std::move(*record);
}

Review judged(ReviewVerdict verdict, const std::string &author = "Ada")
{
    Review review;
    review.author = author;
    review.verdict = verdict;
    return review;
}

/// Saves the card with another locus; returns the id of the edit.
std::string edit(const CardStore &store, const std::string &locus)
{
    Card card = mustRead(store).card;
    card.locus = locus;
    const Result<CardRecord> saved = store.save(card, "Ada", "because");
    if (!saved)
        qFatal("%s", saved.error().message.c_str());
    return saved->reviews.back().id;
}

void append(const std::filesystem::path &path, const std::string &text)
{
    std::ofstream(path, std::ios::app | std::ios::binary) << text;
}

} // namespace

class TestStore : public QObject
{
    Q_OBJECT

private slots:
    void reviewsAreAppended()
    {
        const WorkspaceCopy copy;
        const CardStore store(copy.skills());
        QCOMPARE(mustRead(store).standingReview()->verdict, ReviewVerdict::NeedsEvidence);
        const Result<Review> approved = store.review(name, judged(ReviewVerdict::Approve));
        QVERIFY(approved.has_value());
        QCOMPARE(approved->cardRevision, 2);
        QVERIFY(!approved->time.empty());
        const CardRecord record = mustRead(store);
        QCOMPARE(record.reviews.size(), std::size_t{2});
        QCOMPARE(record.standingReview()->id, approved->id);
    }

    /// What a newer program wrote into the card is said, and is there after an edit and after the edit was taken back.
    void keysOfANewerFormatAreKept()
    {
        const WorkspaceCopy copy;
        const CardStore store(copy.skills());
        const std::filesystem::path path = mustRead(store).directory / "card.toml";
        std::string text = *files::readFile(path, 1 << 20);
        const std::string format = text.starts_with("format = 2\n") ? "2.1" : "1.1";
        if (format == "2.1")
            text.erase(0, text.find('\n') + 1);
        const std::size_t scope = text.find("[scope]\n");
        QVERIFY(scope != std::string::npos);
        text.insert(scope + 8, "moods = [\"calm\"]\n");
        text = "format = \"" + format + "\"\nauthor = \"Ada\"\n" + text;
        QVERIFY(files::writeFileAtomic(path, text));
        const auto said = [&store] {
            const std::vector<std::string> notices = mustRead(store).notices;
            return std::count_if(notices.begin(), notices.end(), [](const std::string &notice) {
                return notice.find("its keys 'author' and 'scope.moods' are kept and not understood.")
                       != std::string::npos;
            });
        };
        QCOMPARE(said(), 1);
        const auto keeps = [&path, &format] {
            const std::string now = *files::readFile(path, 1 << 20);
            return now.starts_with("format = \"" + format + "\"\nauthor = \"Ada\"\nname = ")
                   && now.find("[scope]\nmoods = [\"calm\"]\n") != std::string::npos;
        };
        const std::string event = edit(store, "elsewhere");
        QVERIFY2(keeps(), files::readFile(path, 1 << 20)->c_str());
        QCOMPARE(said(), 1);
        const Result<Review> back = store.revert(name, event, "Ada");
        QVERIFY2(back, back ? "" : back.error().message.c_str());
        QVERIFY(keeps());
        QVERIFY(mustRead(store).card.locus != "elsewhere");

        QVERIFY(files::writeFileAtomic(path, "format = 3\n" + text.substr(text.find('\n') + 1)));
        const Result<CardRecord> refused = store.read(name);
        QVERIFY(!refused);
        QVERIFY2(refused.error().message.ends_with(
                     "the format is 3; this program reads 1 and 2, a newer one is needed."),
                 refused.error().message.c_str());
    }

    void aCommentLeavesTheVerdictStanding()
    {
        const WorkspaceCopy copy;
        const CardStore store(copy.skills());
        QVERIFY(store.review(name, judged(ReviewVerdict::Approve)).has_value());
        const Result<Review> comment = store.review(name, judged(ReviewVerdict::Comment));
        QVERIFY(comment.has_value());
        const CardRecord record = mustRead(store);
        QCOMPARE(record.reviews.back().verdict, ReviewVerdict::Comment);
        QCOMPARE(record.standingReview()->verdict, ReviewVerdict::Approve);
        QCOMPARE(record.undoCandidate()->id, comment->id);
    }

    void reviewsOfAnOldRevisionConflict()
    {
        const WorkspaceCopy copy;
        const CardStore store(copy.skills());
        Review review = judged(ReviewVerdict::Approve);
        review.cardRevision = 1;
        QCOMPARE(store.review(name, review).error().code, ErrorCode::Conflict);
        QCOMPARE(store.review(name, judged(ReviewVerdict::Edit)).error().code, ErrorCode::InvalidInput);
        QCOMPARE(store.review(name, judged(ReviewVerdict::Approve, "")).error().code,
                 ErrorCode::InvalidInput);
        QCOMPARE(store.review("no-such", judged(ReviewVerdict::Approve)).error().code, ErrorCode::NotFound);
        QCOMPARE(store.review("../" + name, judged(ReviewVerdict::Approve)).error().code,
                 ErrorCode::InvalidInput);
        QCOMPARE(mustRead(store).reviews.size(), std::size_t{1});
    }

    void undoAndRedoAreEvents()
    {
        const WorkspaceCopy copy;
        const CardStore store(copy.skills());
        QVERIFY(store.review(name, judged(ReviewVerdict::Approve)).has_value());
        QVERIFY(store.revert(name, mustRead(store).undoCandidate()->id, "Ada").has_value());
        CardRecord record = mustRead(store);
        QCOMPARE(record.standingReview()->verdict,
                 ReviewVerdict::NeedsEvidence); // the one before stands again
        QCOMPARE(record.undoCandidate()->verdict, ReviewVerdict::NeedsEvidence);
        QVERIFY(store.revert(name, record.redoCandidate()->id, "Ada").has_value());
        record = mustRead(store);
        QCOMPARE(record.standingReview()->verdict, ReviewVerdict::Approve);
        QVERIFY(record.redoCandidate() == nullptr);
        QCOMPARE(record.reviews.size(), std::size_t{4}); // nothing was erased
    }

    void anEventIsTakenBackOnce()
    {
        const WorkspaceCopy copy;
        const CardStore store(copy.skills());
        QVERIFY(store.revert(name, "e000000000000001", "Ada").has_value());
        QCOMPARE(store.revert(name, "e000000000000001", "Ada").error().code, ErrorCode::Conflict);
        QCOMPARE(store.revert(name, "e0", "Ada").error().code, ErrorCode::NotFound);
        QVERIFY(mustRead(store).standingReview() == nullptr);
        QVERIFY(mustRead(store).undoCandidate() == nullptr);
    }

    void editsRaiseTheRevisionAndCanBeTakenBack()
    {
        const WorkspaceCopy copy;
        const CardStore store(copy.skills());
        const Card original = mustRead(store).card;
        const std::string first = edit(store, "first");
        const std::string second = edit(store, "second");
        QCOMPARE(mustRead(store).card.revision, 4);
        // In order: not the first while the second shows.
        QCOMPARE(store.revert(name, first, "Ada").error().code, ErrorCode::Conflict);
        QVERIFY(store.revert(name, second, "Ada").has_value());
        QCOMPARE(mustRead(store).card.locus, std::string("first"));
        QVERIFY(store.revert(name, first, "Ada").has_value());
        CardRecord record = mustRead(store);
        QCOMPARE(record.card.revision, 6);
        record.card.revision = original.revision;
        QVERIFY(record.card == original);
    }

    void everyRevisionsTextIsInTheLog()
    {
        const WorkspaceCopy copy;
        const CardStore store(copy.skills());
        const Card original = mustRead(store).card;
        QCOMPARE(revisionsOf(mustRead(store)).size(), std::size_t{1});
        edit(store, "first");
        const std::string second = edit(store, "second");
        QVERIFY(store.revert(name, second, "Grace").has_value());
        const std::vector<Revision> revisions = revisionsOf(mustRead(store));
        QCOMPARE(revisions.size(), std::size_t{4});
        const std::vector<std::string> loci{original.locus, "first", "second", "first"};
        for (std::size_t i = 0; i < revisions.size(); ++i) {
            QCOMPARE(revisions[i].number, original.revision + static_cast<int>(i));
            QCOMPARE(parseCard(revisions[i].text, "card.toml")->locus, loci[i]);
        }
        QVERIFY(revisions[0].author.empty());
        QCOMPARE(revisions[1].author, std::string("Ada"));
        QCOMPARE(revisions[1].reason, std::string("because"));
        QCOMPARE(revisions[3].author, std::string("Grace"));
    }

    void redoFollowsTheOrderOfTheUndos()
    {
        const WorkspaceCopy copy;
        const CardStore store(copy.skills());
        edit(store, "first");
        edit(store, "second");
        for (const char *expected : {"first", "row load"}) {
            QVERIFY(store.revert(name, mustRead(store).undoCandidate()->id, "Ada").has_value());
            QCOMPARE(mustRead(store).card.locus, std::string(expected));
        }
        const std::string undoOfSecond = mustRead(store).reviews[mustRead(store).reviews.size() - 2].id;
        QCOMPARE(store.revert(name, undoOfSecond, "Ada").error().code, ErrorCode::Conflict);
        for (const char *expected : {"first", "second"}) {
            QVERIFY(store.revert(name, mustRead(store).redoCandidate()->id, "Ada").has_value());
            QCOMPARE(mustRead(store).card.locus, std::string(expected));
        }
        QVERIFY(mustRead(store).redoCandidate() == nullptr);
        // …and back once more, past what was redone.
        QVERIFY(store.revert(name, mustRead(store).undoCandidate()->id, "Ada").has_value());
        QCOMPARE(mustRead(store).card.locus, std::string("first"));
        edit(store, "third");
        QVERIFY(mustRead(store).redoCandidate() == nullptr); // something new was done
    }

    void savingAnOldRevisionConflicts()
    {
        const WorkspaceCopy copy;
        const CardStore store(copy.skills());
        Card stale = mustRead(store).card;
        edit(store, "newer");
        stale.locus = "older";
        QCOMPARE(store.save(stale, "Bob", "").error().code, ErrorCode::Conflict);
        QCOMPARE(mustRead(store).card.locus, std::string("newer"));
    }

    void savingNoChangeIsNoEvent()
    {
        const WorkspaceCopy copy;
        const CardStore store(copy.skills());
        QVERIFY(store.save(mustRead(store).card, "Ada", "").has_value());
        QCOMPARE(mustRead(store).reviews.size(), std::size_t{1});
        QCOMPARE(mustRead(store).card.revision, 2);
    }

    void skillMarkdownFollows()
    {
        const WorkspaceCopy copy;
        const CardStore store(copy.skills());
        append(copy.skills() / name / "SKILL.md", "by hand\n");
        QCOMPARE(mustRead(store).notices.size(), std::size_t{1});
        QVERIFY(store.save(mustRead(store).card, "Ada", "").has_value());
        QVERIFY(mustRead(store).notices.empty());
        edit(store, "elsewhere");
        QVERIFY(mustRead(store).notices.empty());
        QVERIFY(store.appendVerification(name, {"t", "a/b/K01", "00000000000000a1", 3, "correct", true, true})
                    .has_value());
        const CardRecord record = mustRead(store);
        QVERIFY(record.notices.empty());
        QCOMPARE(record.life(), Life::Admitted);
    }

    void anInterruptedEditIsLeftOutAndTakenBack()
    {
        const WorkspaceCopy copy;
        const CardStore store(copy.skills());
        const CardRecord before = mustRead(store);
        Review event = judged(ReviewVerdict::Edit);
        event.id = "e0000000000000ff";
        event.cardRevision = before.card.revision + 1; // as if the kill came before card.toml was replaced
        event.before = writeCard(before.card);
        append(copy.skills() / name / "reviews.jsonl", writeReview(event) + '\n');

        const CardRecord interrupted = mustRead(store);
        QCOMPARE(interrupted.reviews.size(), std::size_t{1});
        QCOMPARE(interrupted.notices.size(), std::size_t{1});
        edit(store, "next");
        const CardRecord after = mustRead(store);
        QVERIFY(after.notices.empty());
        QCOMPARE(after.card.revision, 3);
        QCOMPARE(after.reviews.size(), std::size_t{4}); // seed, interrupted, its recovery, the edit
        QVERIFY(after.revertedReviews().count("e0000000000000ff") > 0);
        QCOMPARE(after.reviews[2].author, std::string("recovery"));
        QCOMPARE(store.revert(name, after.reviews[2].id, "Ada").error().code,
                 ErrorCode::Conflict); // its text is lost
        QVERIFY(after.redoCandidate() == nullptr);
    }

    void anInterruptedRevertIsFinished()
    {
        const WorkspaceCopy copy;
        const CardStore store(copy.skills());
        const std::string editId = edit(store, "new place");
        Review event = judged(ReviewVerdict::Revert);
        event.id = "e0000000000000ff";
        event.cardRevision = 4;
        event.reverts = editId;
        event.before = files::readFile(copy.skills() / name / "card.toml", 1 << 20).value();
        append(copy.skills() / name / "reviews.jsonl", writeReview(event) + '\n');
        QCOMPARE(mustRead(store).card.locus, std::string("new place"));
        QVERIFY(store.review(name, judged(ReviewVerdict::Approve)).has_value());
        const CardRecord after = mustRead(store);
        QCOMPARE(after.card.locus, std::string("row load"));
        QCOMPARE(after.card.revision, 4);
        QVERIFY(after.notices.empty());
    }

    void damagedAndTornLinesAreSaid()
    {
        const WorkspaceCopy copy;
        const CardStore store(copy.skills());
        append(copy.skills() / name / "reviews.jsonl", "{\"id\":\"x\",\"vredict\":1}\n{\"id\":\"y");
        const CardRecord record = mustRead(store);
        QCOMPARE(record.reviews.size(), std::size_t{1});
        QCOMPARE(record.notices.size(), std::size_t{2});
        QVERIFY(record.notices[0].find("reviews.jsonl:2:") != std::string::npos);
        QVERIFY(record.notices[1].find("was cut short") != std::string::npos);
    }

    void creatingMakesAWholeFolderOnce()
    {
        const WorkspaceCopy copy;
        const CardStore store(copy.skills());
        Card card = mustRead(store).card;
        card.name = "another";
        card.revision = 1;
        const Result<CardRecord> created = store.create(card, "code\n");
        QVERIFY(created.has_value());
        QVERIFY(created->notices.empty());
        QCOMPARE(created->carrier, std::string("code\n"));
        QCOMPARE(store.create(card, "code\n").error().code, ErrorCode::Conflict);
        QCOMPARE(store.readAll().size(), std::size_t{2});
    }

    void unreadableCardsAreProblemsOfTheirOwn()
    {
        const WorkspaceCopy copy;
        const CardStore store(copy.skills());
        std::filesystem::create_directory(copy.skills() / "broken");
        append(copy.skills() / "broken/card.toml", "name = ");
        std::vector<Error> problems;
        QCOMPARE(store.readAll(&problems).size(), std::size_t{1});
        QCOMPARE(problems.size(), std::size_t{1});
        QVERIFY(problems[0].message.find("broken/card.toml:1:") != std::string::npos);
    }

    void processesInParallelLoseNoReview()
    {
        const WorkspaceCopy copy;
        constexpr int eachTimes = 30;
        std::vector<pid_t> children;
        for (const char *author : {"one", "two"}) {
            const pid_t child = ::fork();
            if (child == 0) {
                const CardStore store(copy.skills());
                bool ok = true;
                for (int i = 0; i < eachTimes; ++i)
                    ok = ok && store.review(name, judged(ReviewVerdict::Approve, author)).has_value();
                ::_exit(ok ? 0 : 1);
            }
            children.push_back(child);
        }
        for (const pid_t child : children) {
            int status = 0;
            QCOMPARE(::waitpid(child, &status, 0), child);
            QCOMPARE(status, 0);
        }
        const CardRecord record = mustRead(CardStore(copy.skills()));
        QVERIFY(record.notices.empty());
        std::set<std::string> ids;
        std::map<std::string, int> byAuthor;
        for (const Review &review : record.reviews) {
            ids.insert(review.id);
            ++byAuthor[review.author];
        }
        QCOMPARE(ids.size(), std::size_t{1 + 2 * eachTimes});
        QCOMPARE(byAuthor["one"], eachTimes);
        QCOMPARE(byAuthor["two"], eachTimes);
    }

    void editorsInParallelNeverOverwriteEachOther()
    {
        const WorkspaceCopy copy;
        std::vector<pid_t> children;
        for (const char *author : {"one", "two"}) {
            const pid_t child = ::fork();
            if (child == 0) {
                const CardStore store(copy.skills());
                int saved = 0;
                for (int i = 0; i < 20; ++i) {
                    Card card = mustRead(store).card;
                    card.locus = author + std::to_string(i);
                    const Result<CardRecord> result = store.save(card, author, "");
                    if (!result && result.error().code != ErrorCode::Conflict)
                        ::_exit(255);
                    saved += result ? 1 : 0;
                }
                ::_exit(saved);
            }
            children.push_back(child);
        }
        int saved = 0;
        for (const pid_t child : children) {
            int status = 0;
            QCOMPARE(::waitpid(child, &status, 0), child);
            QVERIFY(WIFEXITED(status) && WEXITSTATUS(status) != 255);
            saved += WEXITSTATUS(status);
        }
        const CardRecord record = mustRead(CardStore(copy.skills()));
        QCOMPARE(record.card.revision, 2 + saved);
        QCOMPARE(record.reviews.size(), static_cast<std::size_t>(1 + saved));
        int revision = 2;
        for (std::size_t i = 1; i < record.reviews.size(); ++i)
            QCOMPARE(record.reviews[i].cardRevision, ++revision);
    }
};

QTEST_GUILESS_MAIN(TestStore)
#include "tst_store.moc"
