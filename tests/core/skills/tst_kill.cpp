// SPDX-License-Identifier: GPL-3.0-or-later
// A process that edits cards and records trials is killed at random moments, again and again on the same files: fifty times, fewer under the sanitizers.
#include "core/base/random.h"
#include "core/files/atomicfile.h"
#include "core/files/jsonlines.h"
#include "core/lineage/lineage.h"
#include "core/skills/logs.h"
#include "core/skills/store.h"
#include "tests/core/trialfixture.h"
#include "tests/paths.h"

#include <QTest>

#include <chrono>
#include <csignal>
#include <limits>
#include <random>

#include <sys/wait.h>
#include <unistd.h>

using namespace klineage;
using namespace klineage::skills;
using namespace klineage::tests;

namespace {

const std::string name = "stage-rows";

/// Counts of what the files hold, or what a child says it finished.
struct Counts {
    std::size_t events = 0;
    std::size_t trials = 0;
};

/// Works for ever; after each finished change one byte goes to the pipe: 'e' an event, 't' a trial, '!' a failure.
[[noreturn]] void work(const WorkspaceCopy &copy, int acknowledge)
{
    const CardStore store(copy.skills());
    const auto say = [&](char what, bool ok) {
        const char byte = ok ? what : '!';
        if (::write(acknowledge, &byte, 1) != 1)
            ::_exit(1);
    };
    for (int i = 0;; ++i) {
        Review review;
        review.author = "child";
        review.verdict = i % 2 == 0 ? ReviewVerdict::Approve : ReviewVerdict::Reject;
        say('e', store.review(name, review).has_value());

        Result<CardRecord> record = store.read(name);
        if (!record)
            ::_exit(1);
        record->card.locus = "place " + randomId(); // never what it was
        const Result<CardRecord> saved = store.save(record->card, "child", "again");
        say('e', saved.has_value());
        if (i % 3 == 0 && saved)
            say('e', store.revert(name, saved->reviews.back().id, "child").has_value());

        gate::Trial trial = makeTrial(randomId(), "candidate " + std::to_string(i));
        trial.verdict.log = std::string(20000, 'x'); // long enough to be cut
        say('t', lineage::appendTrial(copy.lineage(), trial).has_value());
    }
}

/// Strictly: every complete line parses. The torn tail, if any, is not counted.
Counts countStrictly(const WorkspaceCopy &copy)
{
    Counts counts;
    const auto reviews = files::readLines(copy.skills() / name / "reviews.jsonl");
    const auto trials = files::readLines(copy.lineage() / "trials.jsonl");
    if (!reviews || !trials)
        qFatal("a log cannot be read");
    for (const files::Line &line : reviews->lines) {
        const Result<Review> review = parseReview(line.text, "reviews.jsonl");
        if (!review)
            qFatal("%s", review.error().message.c_str());
        counts.events += review->author != "recovery";
    }
    for (const files::Line &line : trials->lines) {
        const Result<gate::Trial> trial = gate::parseTrial(line.text, "trials.jsonl");
        if (!trial)
            qFatal("%s", trial.error().message.c_str());
        ++counts.trials;
    }
    return counts;
}

/// A child at work, until it is killed.
class Worker
{
public:
    explicit Worker(const WorkspaceCopy &copy)
    {
        int pipe[2] = {-1, -1};
        if (::pipe(pipe) != 0)
            qFatal("pipe");
        m_child = ::fork();
        if (m_child == 0) {
            ::close(pipe[0]);
            work(copy, pipe[1]);
        }
        ::close(pipe[1]);
        m_pipe = pipe[0];
    }
    ~Worker() { ::close(m_pipe); }
    Worker(const Worker &) = delete;
    Worker &operator=(const Worker &) = delete;

    void waitForChanges(int count)
    {
        char byte = 0;
        for (int i = 0; i < count && ::read(m_pipe, &byte, 1) == 1; ++i)
            note(byte);
    }

    /// What it said it had finished; failed when it ended by itself or could not do something.
    Counts kill(bool &failed)
    {
        ::kill(m_child, SIGKILL);
        int status = 0;
        ::waitpid(m_child, &status, 0);
        waitForChanges(std::numeric_limits<int>::max());
        failed = m_failed || !WIFSIGNALED(status);
        return m_finished;
    }

private:
    void note(char byte)
    {
        m_finished.events += byte == 'e';
        m_finished.trials += byte == 't';
        m_failed = m_failed || byte == '!';
    }

    pid_t m_child = -1;
    int m_pipe = -1;
    Counts m_finished;
    bool m_failed = false;
};

/// How long twelve changes take here and now.
std::chrono::microseconds timeOfTwelveChanges()
{
    const WorkspaceCopy copy;
    Worker worker(copy);
    const auto begin = std::chrono::steady_clock::now();
    worker.waitForChanges(12);
    const auto elapsed = std::chrono::steady_clock::now() - begin;
    bool failed = false;
    static_cast<void>(worker.kill(failed));
    return std::chrono::duration_cast<std::chrono::microseconds>(elapsed);
}

} // namespace

class TestKill : public QObject
{
    Q_OBJECT

private slots:
    void killsDamageNothing()
    {
        const std::size_t rounds = klineage::test::isSanitized() ? 15 : 50;
        const WorkspaceCopy copy;
        const CardStore store(copy.skills());
        std::mt19937 random(std::random_device{}());
        // So many changes, however long they take now, and then somewhere in the one or two that come next.
        std::uniform_int_distribution<int> changes(0, 24);
        std::uniform_int_distribution<useconds_t> moreUs(
            0, static_cast<useconds_t>(timeOfTwelveChanges().count() / 6));
        Counts total;
        for (std::size_t round = 0; round < rounds; ++round) {
            const Counts before = countStrictly(copy);
            bool failed = false;
            Worker worker(copy);
            worker.waitForChanges(changes(random));
            ::usleep(moreUs(random));
            const Counts finished = worker.kill(failed);
            QVERIFY2(!failed, "the child ended by itself or could not finish a change");
            total.events += finished.events;
            total.trials += finished.trials;

            // Everything finished is there, and at most the one in flight beside it.
            const Counts after = countStrictly(copy);
            QVERIFY(after.events >= before.events + finished.events);
            QVERIFY(after.events <= before.events + finished.events + 1);
            QVERIFY(after.trials >= before.trials + finished.trials);
            QVERIFY(after.trials <= before.trials + finished.trials + 1);

            // Both read without help; card.toml is whole.
            const Result<CardRecord> record = store.read(name);
            QVERIFY2(record.has_value(), record ? "" : record.error().message.c_str());
            const Result<lineage::Lineage> lineage = lineage::readLineage(copy.lineage());
            QVERIFY(lineage.has_value());
            QCOMPARE(lineage->trials.size(), after.trials);

            // The next writer leaves the folder as if nothing had happened, though taking an edit back may make its own
            // text stale.
            const Result<CardRecord> next = store.save(record->card, "Ada", "");
            QVERIFY2(next || next.error().code == ErrorCode::Conflict,
                     next ? "" : next.error().message.c_str());
            const Result<CardRecord> recovered = store.read(name);
            QVERIFY(recovered.has_value());
            for (const std::string &notice :
                 recovered->notices) // the torn line itself stays until the next append
                QVERIFY2(notice.find("was cut short") != std::string::npos, notice.c_str());
        }
        QVERIFY2(total.events > rounds && 5 * total.trials > rounds,
                 "the children were killed before they did anything");
    }
};

QTEST_GUILESS_MAIN(TestKill)
#include "tst_kill.moc"
