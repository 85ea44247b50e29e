// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/network/sse.h"

#include <QTest>

using namespace klineage;
using namespace klineage::llm;

namespace {

/// "name=data" of each event, with newlines shown as '|'.
Result<std::vector<std::string>> parse(const std::vector<std::string> &pieces, std::size_t limit = 1000)
{
    SseParser parser(limit);
    std::vector<std::string> events;
    for (const std::string &piece : pieces) {
        const Status fed = parser.feed(piece, [&](const SseEvent &event) -> Status {
            std::string shown = event.name + '=' + event.data;
            std::replace(shown.begin(), shown.end(), '\n', '|');
            events.push_back(shown);
            return {};
        });
        if (!fed)
            return tl::unexpected(fed.error());
    }
    return events;
}

} // namespace

class TestSse : public QObject
{
    Q_OBJECT

private slots:
    void streams_data()
    {
        QTest::addColumn<QByteArray>("stream");
        QTest::addColumn<QString>("events");
        QTest::newRow("one") << QByteArray("data: a\n\n") << "message=a";
        QTest::newRow("named") << QByteArray("event: ping\ndata: a\n\ndata: b\n\n") << "ping=a;message=b";
        QTest::newRow("lines joined") << QByteArray("data: a\ndata:b\ndata\n\n") << "message=a|b|";
        QTest::newRow("CRLF") << QByteArray("event: e\r\ndata: a\r\n\r\n") << "e=a";
        QTest::newRow("CR") << QByteArray("event: e\rdata: a\r\rdata: b\r\r") << "e=a;message=b";
        QTest::newRow("byte order mark") << QByteArray("\xef\xbb\xbf"
                                                       "data: a\n\n")
                                         << "message=a";
        QTest::newRow("comments, ids, retries")
            << QByteArray(": hello\nid: 1\nretry: 10\ndata: a\n\n") << "message=a";
        QTest::newRow("no data, no event") << QByteArray("event: e\n\ndata: a\n\n") << "message=a";
        QTest::newRow("one blank is cut") << QByteArray("data:  a \n\n") << "message= a ";
        QTest::newRow("colons") << QByteArray("data: a: b\n\n") << "message=a: b";
        QTest::newRow("unended") << QByteArray("data: a\n\ndata: b\n") << "message=a";
        QTest::newRow("zero bytes") << QByteArray("data: a\0b\n\n", 11)
                                    << QString::fromLatin1("message=a\0b", 11);
    }

    /// The same events wherever the bytes are cut: whole, in two at each place, and one by one.
    void streams()
    {
        QFETCH(QByteArray, stream);
        QFETCH(QString, events);
        const std::string text = stream.toStdString();
        std::vector<std::string> expected;
        for (const QString &event : events.split(';'))
            expected.push_back(event.toStdString());
        QCOMPARE(*parse({text}), expected);
        std::vector<std::string> bytes;
        for (std::size_t cut = 0; cut < text.size(); ++cut) {
            QCOMPARE(*parse({text.substr(0, cut), text.substr(cut)}), expected);
            bytes.push_back(text.substr(cut, 1));
        }
        QCOMPARE(*parse(bytes), expected);
    }

    void limitsEvents()
    {
        QVERIFY(parse({"data: " + std::string(900, 'x') + "\n\n"}));
        const auto line = parse({"data: ", std::string(600, 'x'), std::string(600, 'x')});
        QCOMPARE(line.error().code, ErrorCode::Protocol);
        std::vector<std::string> lines(300, "data: xxxx\n");
        QVERIFY(!parse(lines));
        QVERIFY(parse(
            std::vector<std::string>(300, "data: xxxx\n\n"))); // the limit is an event's, not the stream's
    }

    void stopsWhenTheReceiverDoes()
    {
        SseParser parser;
        int count = 0;
        const Status fed = parser.feed("data: a\n\ndata: b\n\n", [&](const SseEvent &) -> Status {
            ++count;
            return fail(ErrorCode::Protocol, "Enough.");
        });
        QCOMPARE(fed.error().message, std::string("Enough."));
        QCOMPARE(count, 1);
    }
};

QTEST_GUILESS_MAIN(TestSse)
#include "tst_sse.moc"

#include <algorithm>
