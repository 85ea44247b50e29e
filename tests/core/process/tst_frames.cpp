// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/process/childprocess.h"
#include "core/process/framepipe.h"
#include "tests/patience.h"

#include <QtTest>

#include <sys/socket.h>
#include <thread>

using namespace klineage;
using nlohmann::json;
using process::Deadline;
using process::FramePipe;
using process::FrameReader;

namespace {

struct Pair {
    FramePipe pipe;
    FileDescriptor peer;
};

Pair makePair(std::size_t limit = process::maxFrameBytes)
{
    auto sockets = process::socketPair();
    return {FramePipe(std::move(sockets->first), limit), std::move(sockets->second)};
}

void put(const Pair &pair, std::string_view bytes)
{
    QCOMPARE(::send(pair.peer.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
}

std::string header(std::uint32_t length)
{
    return {static_cast<char>(length & 0xff), static_cast<char>(length >> 8 & 0xff),
            static_cast<char>(length >> 16 & 0xff), static_cast<char>(length >> 24)};
}

} // namespace

class TestFrames : public QObject
{
    Q_OBJECT
private slots:
    void anyPieces();
    void truncatedAtEveryByte();
    void garbage_data();
    void garbage();
    void errorIsFinal();
    void sendAndReceive();
    void timeoutBreaksThePipe();
    void stopWakesTheWait();
    void peerThatDoesNotRead();
    void deadChildWithOpenSocket();
};

void TestFrames::anyPieces()
{
    const std::string stream = *process::encodeFrame({{"a", 1}}) + *process::encodeFrame({{"b", "ü"}})
                               + *process::encodeFrame({{"c", json::array()}});
    for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
        FrameReader reader;
        std::vector<json> got;
        for (std::size_t at = 0; at < stream.size(); at += piece) {
            reader.feed(std::span(stream).subspan(at, std::min(piece, stream.size() - at)));
            for (auto message = reader.next(); message && *message; message = reader.next())
                got.push_back(**message);
        }
        QCOMPARE(got.size(), std::size_t{3});
        QCOMPARE(got[0].at("a").get<int>(), 1);
        QCOMPARE(got[1].at("b").get<std::string>(), std::string("ü"));
        QVERIFY(reader.atBoundary());
    }
}

void TestFrames::truncatedAtEveryByte()
{
    const std::string frame = *process::encodeFrame({{"op", "run"}, {"values", {1, 2, 3}}});
    for (std::size_t cut = 0; cut < frame.size(); ++cut) {
        auto pair = makePair();
        put(pair, std::string_view(frame).substr(0, cut));
        pair.peer.close();
        const auto message = pair.pipe.receive(Deadline::in(patienceSeconds));
        QVERIFY(!message);
        QCOMPARE(message.error().code, ErrorCode::Protocol);
        QVERIFY(pair.pipe.ended());
        QCOMPARE(pair.pipe.cut(), cut > 0);
    }
}

void TestFrames::garbage_data()
{
    QTest::addColumn<QByteArray>("bytes");
    const auto row = [](const char *name, const std::string &bytes) {
        QTest::newRow(name) << QByteArray::fromStdString(bytes);
    };
    row("text", "Hello, this is no frame at all");
    row("oversized", header(65u << 20));
    row("largest length", header(0xffffffffu));
    row("empty frame", header(0));
    row("no json", header(5) + "{\"a\":");
    row("array", header(5) + "[1,2]");
    row("number", header(2) + "12");
    row("binary", header(4) + std::string("\0\xff\xfe\x01", 4));
    row("trailing bytes inside", header(6) + "{} {} ");
}

void TestFrames::garbage()
{
    QFETCH(QByteArray, bytes);
    auto pair = makePair();
    put(pair, bytes.toStdString());
    const auto message = pair.pipe.receive(Deadline::in(patienceSeconds));
    QVERIFY(!message);
    QCOMPARE(message.error().code, ErrorCode::Protocol);
    QVERIFY(!pair.pipe.ended());
}

void TestFrames::errorIsFinal()
{
    FrameReader reader(100);
    const std::string bad = header(101);
    reader.feed(bad);
    QVERIFY(!reader.next());
    const std::string good = *process::encodeFrame(json::object());
    reader.feed(good);
    QVERIFY(!reader.next());
}

void TestFrames::sendAndReceive()
{
    auto sockets = process::socketPair();
    FramePipe left(std::move(sockets->first));
    FramePipe right(std::move(sockets->second));
    const std::string large(3'000'000, 'x'); // more than a socket holds
    std::thread echo([&] {
        const auto message = right.receive(Deadline::in(patienceSeconds));
        if (message)
            (void)right.send(*message, Deadline::in(patienceSeconds));
    });
    QVERIFY(left.send({{"text", large}}, Deadline::in(patienceSeconds)));
    const auto answer = left.receive(Deadline::in(patienceSeconds));
    echo.join();
    QVERIFY(answer);
    QCOMPARE(answer->at("text").get<std::string>().size(), large.size());
}

void TestFrames::timeoutBreaksThePipe()
{
    auto pair = makePair();
    QElapsedTimer timer;
    timer.start();
    auto message = pair.pipe.receive(Deadline::in(0.1));
    QVERIFY(!message);
    QCOMPARE(message.error().code, ErrorCode::Timeout);
    QVERIFY(timer.elapsed() >= 90 && timer.elapsed() < patienceMs);
    put(pair, *process::encodeFrame(json::object())); // too late: it would be taken for the next answer
    message = pair.pipe.receive(Deadline::in(1));
    QCOMPARE(message.error().code, ErrorCode::Timeout);
}

void TestFrames::stopWakesTheWait()
{
    auto pair = makePair();
    std::stop_source stop;
    std::thread stopper([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        stop.request_stop();
    });
    QElapsedTimer timer;
    timer.start();
    const auto message = pair.pipe.receive(Deadline::in(600), nullptr, stop.get_token());
    stopper.join();
    QVERIFY(!message);
    QCOMPARE(message.error().code, ErrorCode::Cancelled);
    QVERIFY(timer.elapsed() < patienceMs);
}

void TestFrames::peerThatDoesNotRead()
{
    auto pair = makePair();
    const auto sent = pair.pipe.send({{"text", std::string(8'000'000, 'x')}}, Deadline::in(0.2));
    QVERIFY(!sent);
    QCOMPARE(sent.error().code, ErrorCode::Timeout);
}

void TestFrames::deadChildWithOpenSocket()
{
    // The peer socket stays open in this process, as a surviving grandchild would keep it.
    auto pair = makePair();
    process::ChildOptions options;
    options.command = {"true"};
    auto child = process::ChildProcess::start(options);
    QVERIFY(child);
    const auto message = pair.pipe.receive(Deadline::in(patienceSeconds), &*child);
    QVERIFY(!message);
    QCOMPARE(message.error().code, ErrorCode::Protocol);
    QVERIFY(pair.pipe.ended());
}

QTEST_GUILESS_MAIN(TestFrames)
#include "tst_frames.moc"
