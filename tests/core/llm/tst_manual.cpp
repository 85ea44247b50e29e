// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/atomicfile.h"
#include "core/llm/providers/manualdesk.h"
#include "core/llm/providers/manualfolder.h"
#include "tests/core/llm/scriptedprovider.h"

#include <QTemporaryDir>
#include <QTest>

#include <atomic>
#include <thread>

using namespace klineage;
using namespace klineage::llm;

class TestManual : public QObject
{
    Q_OBJECT

private:
    /// The desk's request, once it lies there; nothing when nobody waits for the thread any more.
    static std::optional<ManualDesk::Pending> waitForPending(const ManualDesk &desk,
                                                             const std::stop_token &given)
    {
        while (!given.stop_requested()) {
            if (auto pending = desk.pending())
                return pending;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return std::nullopt;
    }

private slots:
    void deskShowsAndTakes()
    {
        const auto desk = std::make_shared<ManualDesk>();
        std::atomic<int> changes = 0;
        desk->setOnChange([&] { ++changes; });
        DeskProvider provider(desk);
        QVERIFY(!desk->pending());
        std::jthread person([&](const std::stop_token &given) {
            const auto first = waitForPending(*desk, given);
            if (first)
                (void)desk->reply(first->number, "to " + first->request.messages[0].text);
            while (const auto second = waitForPending(*desk, given)) {
                if (second->number == first->number)
                    continue;
                if (!desk->reply(second->number, " \n") && !desk->reply(first->number, "late"))
                    (void)desk->reply(second->number, "to two");
                return;
            }
        });
        const auto reply = provider.ask(question("one"), {});
        QVERIFY(reply);
        QCOMPARE(reply->text, std::string("to one"));
        QVERIFY(!reply->usageKnown);
        QCOMPARE(provider.ask(question("two"), {})->text, std::string("to two"));
        person.join();
        QVERIFY(!desk->pending());
        QCOMPARE(changes.load(), 4);
        QCOMPARE(desk->reply(2, "late").error().code, ErrorCode::Conflict);
    }

    void deskStopsAtOnce()
    {
        const auto desk = std::make_shared<ManualDesk>();
        DeskProvider provider(desk);
        std::stop_source stop;
        std::jthread stopper([&](const std::stop_token &given) {
            (void)waitForPending(*desk, given);
            stop.request_stop();
        });
        QCOMPARE(provider.ask(question("one"), stop.get_token()).error().error.code, ErrorCode::Cancelled);
        QVERIFY(!desk->pending());
    }

    void folderAsksAndReads()
    {
        QTemporaryDir temporary;
        const std::filesystem::path folder = temporary.path().toStdString();
        FolderProvider provider(folder, 0.02);
        const auto person = [&](const char *requestFile, const char *replyFile, const std::string &text) {
            return std::jthread([=](const std::stop_token &given) {
                while (!given.stop_requested() && !std::filesystem::exists(folder / requestFile))
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                (void)files::writeFileAtomic(folder / replyFile, text);
            });
        };
        {
            const std::jthread writer = person("request-1.md", "reply-1.md", "first");
            QCOMPARE(provider.ask(question("q"), {})->text, std::string("first"));
        }
        const std::string shown = *files::readFile(folder / "request-1.md", 1 << 20);
        QCOMPARE(shown, std::string("# Request: test\n\n## System\n\nYou answer.\n\n## User\n\nq\n\n"));
        { // the same question again is a new one
            const std::jthread writer = person("request-2.md", "reply-2.md", "second");
            QCOMPARE(provider.ask(question("q"), {})->text, std::string("second"));
        }
        // A later process that asks what waits there takes the reply; anything else is a new request.
        FolderProvider later(folder, 0.02);
        QCOMPARE(later.ask(question("q"), {})->text, std::string("second"));
        const std::jthread writer = person("request-3.md", "reply-3.md", "third");
        QCOMPARE(later.ask(question("other"), {})->text, std::string("third"));
    }

    void folderWaitsUntilTheReplyIsWhole()
    {
        using Clock = std::chrono::steady_clock;
        // A busy machine may keep the writer from writing for longer than the provider waits: then it has to wait for longer.
        for (double settle = 0.3;; settle *= 2) {
            QTemporaryDir temporary;
            const std::filesystem::path folder = temporary.path().toStdString();
            Clock::duration longestPause{};
            std::jthread person([&] {
                std::string text;
                auto before = Clock::now();
                for (int part = 0; part < 8; ++part) {
                    text += "part ";
                    (void)files::writeFileAtomic(folder / "reply-1.md", text);
                    longestPause = std::max(longestPause, Clock::now() - before);
                    before = Clock::now();
                    std::this_thread::sleep_for(std::chrono::milliseconds(20));
                }
            });
            FolderProvider provider(folder, settle);
            const auto reply = provider.ask(question("q"), {});
            person.join();
            QVERIFY(reply);
            if (std::chrono::duration<double>(longestPause).count() >= settle && settle < 20)
                continue;
            QCOMPARE(reply->text.size(), 8 * 5);
            break;
        }
    }

    void folderStopsAtOnce()
    {
        QTemporaryDir temporary;
        std::stop_source stop;
        stop.request_stop();
        FolderProvider provider(temporary.path().toStdString());
        QCOMPARE(provider.ask(question("q"), stop.get_token()).error().error.code, ErrorCode::Cancelled);
        FolderProvider missing(temporary.filePath("missing").toStdString());
        const auto refused = missing.ask(question("q"), stop.get_token());
        QVERIFY(!refused);
        QVERIFY(refused.error().error.code != ErrorCode::Cancelled); // there is nothing to wait for
    }
};

QTEST_GUILESS_MAIN(TestManual)
#include "tst_manual.moc"
