// SPDX-License-Identifier: GPL-3.0-or-later
// comments.jsonl: what is written is read, what changed is found again or says so, what was undone is still there.
#include "core/files/sha256.h"
#include "core/lineage/lineage.h"
#include "tests/core/trialfixture.h"

#include <QTest>

#include <fstream>

using namespace klineage;
using namespace klineage::lineage;
using namespace klineage::tests;

namespace {

const std::string text = "a\nb\nc\nd\nc\ne\n";

CommentEvent commentOn(int first, int last, const std::string &words = "why?")
{
    CommentEvent event;
    event.author = "Ada";
    event.text = words;
    event.place = placeInText(text, first, last).value();
    event.place.from = "K00";
    event.place.to = "K01";
    return event;
}

CommentEvent about(CommentKind kind, const std::string &id, const std::string &words = {})
{
    CommentEvent event;
    event.author = "Grace";
    event.kind = kind;
    event.about = id;
    event.text = words;
    return event;
}

} // namespace

class TestComments : public QObject
{
    Q_OBJECT

private slots:
    void placesAreFoundAgain_data()
    {
        using Kind = CommentSpot::Kind;
        QTest::addColumn<int>("first");
        QTest::addColumn<int>("last");
        QTest::addColumn<QByteArray>("now");
        QTest::addColumn<Kind>("kind");
        QTest::addColumn<int>("nowFirst");
        QTest::newRow("as it was") << 2 << 3 << QByteArray("a\nb\nc\nd\nc\ne\n") << Kind::Same << 2;
        QTest::newRow("something else changed") << 2 << 3 << QByteArray("A\nb\nc\n") << Kind::Same << 2;
        QTest::newRow("lines before it") << 2 << 3 << QByteArray("x\ny\na\nb\nc\nd") << Kind::Moved << 4;
        QTest::newRow("the nearest of two") << 5 << 5 << QByteArray("c\na\nb\nx\nd\nc\n") << Kind::Moved << 6;
        QTest::newRow("a line of it changed") << 2 << 3 << QByteArray("a\nb\nC\nd\n") << Kind::Changed << 2;
        QTest::newRow("a blank at its end") << 2 << 2 << QByteArray("a\nb \nc\n") << Kind::Changed << 2;
        QTest::newRow("shorter than it was") << 5 << 6 << QByteArray("a\n") << Kind::Changed << 1;
        QTest::newRow("nothing is left") << 2 << 3 << QByteArray() << Kind::Changed << 1;
    }

    void placesAreFoundAgain()
    {
        QFETCH(int, first);
        QFETCH(int, last);
        QFETCH(QByteArray, now);
        QFETCH(CommentSpot::Kind, kind);
        QFETCH(int, nowFirst);
        const CommentPlace place = placeInText(text, first, last).value();
        const CommentSpot spot = findSpot(place, now.toStdString());
        QCOMPARE(spot.kind, kind);
        QCOMPARE(spot.firstLine, nowFirst);
        if (kind != CommentSpot::Kind::Changed)
            QCOMPARE(spot.lastLine - spot.firstLine, last - first);
    }

    void placesSayWhatTheyAreOn()
    {
        const CommentPlace place = placeInText(text, 2, 4).value();
        QCOMPARE(place.excerpt, std::string("b\nc\nd"));
        QCOMPARE(place.sha, files::sha256Hex(text));
        QCOMPARE(place.textSha, files::sha256Hex("b\nc\nd\n"));
        QVERIFY(!placeInText(text, 0, 1) && !placeInText(text, 3, 2) && !placeInText(text, 6, 7));
        // Cut between two characters.
        std::string wide = "x";
        while (wide.size() < 2 * maxExcerptBytes)
            wide += "é";
        const std::string excerpt = placeInText(wide, 1, 1)->excerpt;
        QCOMPARE(excerpt.size(), maxExcerptBytes - 1);
        QCOMPARE(findSpot(placeInText(wide, 1, 1).value(), "y\n" + wide).firstLine, 2);
    }

    void nothingIsErased()
    {
        const WorkspaceCopy copy;
        const auto events = [&] { return readLineage(copy.lineage())->comments; };
        const auto threads = [&] { return threadsOf(events()); };
        QVERIFY(events().empty());
        const std::string first = appendComment(copy.lineage(), commentOn(2, 3))->id;
        const std::string second =
            appendComment(copy.lineage(), commentOn(5, 5, "and this?\nTwo lines."))->id;
        QCOMPARE(threads().size(), std::size_t(2));
        QCOMPARE(threads()[1].comment.text, std::string("and this?\nTwo lines."));
        QCOMPARE(threads()[0].comment.place, commentOn(2, 3).place);

        QVERIFY(appendComment(copy.lineage(), about(CommentKind::Reply, first, "because")));
        const std::string resolved = appendComment(copy.lineage(), about(CommentKind::Resolve, first))->id;
        QVERIFY(threads()[0].isResolved && threads()[0].replies.size() == 1);
        QCOMPARE(threads()[0].resolvedBy, std::string("Grace"));
        const std::string undo = appendComment(copy.lineage(), about(CommentKind::Revert, resolved))->id;
        QVERIFY(!threads()[0].isResolved);
        QVERIFY(appendComment(copy.lineage(), about(CommentKind::Revert, undo))); // a redo
        QVERIFY(threads()[0].isResolved);
        QVERIFY(appendComment(copy.lineage(), about(CommentKind::Reopen, first)));
        QVERIFY(!threads()[0].isResolved);

        QVERIFY(appendComment(copy.lineage(), about(CommentKind::Revert, second)));
        QCOMPARE(threads().size(), std::size_t(1));
        QCOMPARE(events().size(), std::size_t(8));
        QCOMPARE(threadsOn(events(), "K00", "K01").size(), std::size_t(1));
        QVERIFY(threadsOn(events(), "K01", "K02").empty());

        QCOMPARE(appendComment(copy.lineage(), about(CommentKind::Revert, second)).error().code,
                 ErrorCode::Conflict);
        QCOMPARE(appendComment(copy.lineage(), about(CommentKind::Reply, second, "late")).error().code,
                 ErrorCode::Conflict);
        QCOMPARE(appendComment(copy.lineage(), about(CommentKind::Resolve, "nobody")).error().code,
                 ErrorCode::NotFound);
        QCOMPARE(appendComment(copy.lineage(), about(CommentKind::Reply, resolved, "x")).error().code,
                 ErrorCode::NotFound); // not a comment
        QCOMPARE(appendComment(copy.lineage(), commentOn(2, 3, {})).error().code, ErrorCode::InvalidInput);
        CommentEvent unsigned_ = commentOn(2, 3);
        unsigned_.author.clear();
        QCOMPARE(appendComment(copy.lineage(), unsigned_).error().code, ErrorCode::InvalidInput);
        QCOMPARE(events().size(), std::size_t(8));
    }

    void whatIsDamagedIsSaid()
    {
        const WorkspaceCopy copy;
        QVERIFY(appendComment(copy.lineage(), commentOn(2, 3)));
        std::ofstream(copy.lineage() / "comments.jsonl", std::ios::app)
            << "{\"id\": \"x\", \"kind\": \"shout\"}\n{\"id\": \"tor";
        const Lineage lineage = readLineage(copy.lineage()).value();
        QCOMPARE(lineage.comments.size(), std::size_t(1));
        QCOMPARE(lineage.notices.size(), std::size_t(2));
        QVERIFY(lineage.notices[0].find("comments.jsonl:2") != std::string::npos);
        QVERIFY(lineage.notices[1].find("Line 3 of comments.jsonl was cut short") != std::string::npos);
        QVERIFY(appendComment(copy.lineage(), commentOn(1, 1))); // beside what is torn, not into it
        QCOMPARE(readLineage(copy.lineage())->comments.size(), std::size_t(2));
    }
};

QTEST_GUILESS_MAIN(TestComments)
#include "tst_comments.moc"
