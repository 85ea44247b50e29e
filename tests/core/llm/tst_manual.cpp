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
    /// The desk's request, once it lies there.
    static ManualDesk::Pending waitForPending(const ManualDesk &desk)
    {
        while (true) {
            if (auto pending = desk.pending())
                return *pending;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }

private slots:
    void deskShowsAndTakes()
    {
        const auto desk = std::make_shared<ManualDesk>();
        std::atomic<int> changes = 0;
        desk->setOnChange([&] { ++changes; });
        DeskProvider provider(desk);
        QVERIFY(!desk->pending());
        std::jthread person([&] {
            const ManualDesk::Pending first = waitForPending(*desk);
            (void)desk->reply(first.number, "to " + first.request.messages[0].text);
            while (true) {
                const ManualDesk::Pending second = waitForPending(*desk);
                if (second.number == first.number)
                    continue;
                if (!desk->reply(second.number, " \n") && !desk->reply(first.number, "late"))
                    (void)desk->decline(second.number, "I do not know.");
                return;
            }
        });
        const auto reply = provider.ask(question("one"), {});
        QVERIFY(reply);
        QCOMPARE(reply->text, std::string("to one"));
        QVERIFY(!reply->usageKnown);
        const auto declined = provider.ask(question("two"), {});
        QCOMPARE(declined.error().error.code, ErrorCode::Cancelled);
        QCOMPARE(declined.error().error.message, std::string("I do not know."));
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
        std::jthread stopper([&] {
            (void)waitForPending(*desk);
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
            return std::jthread([=] {
                while (!std::filesystem::exists(folder / requestFile))
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
        QTemporaryDir temporary;
        const std::filesystem::path folder = temporary.path().toStdString();
        std::jthread person([&] {
            std::string text;
            for (int part = 0; part < 8; ++part) {
                text += "part ";
                (void)files::writeFileAtomic(folder / "reply-1.md", text);
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
            }
        });
        FolderProvider provider(folder, 0.3);
        const auto reply = provider.ask(question("q"), {});
        QVERIFY(reply);
        QCOMPARE(reply->text.size(), 8 * 5);
    }

    void folderStopsAtOnce()
    {
        QTemporaryDir temporary;
        std::stop_source stop;
        stop.request_stop();
        FolderProvider provider(temporary.path().toStdString());
        QCOMPARE(provider.ask(question("q"), stop.get_token()).error().error.code, ErrorCode::Cancelled);
        FolderProvider missing("/nonexistent");
        QVERIFY(!missing.ask(question("q"), {}));
    }
};

QTEST_GUILESS_MAIN(TestManual)
#include "tst_manual.moc"
