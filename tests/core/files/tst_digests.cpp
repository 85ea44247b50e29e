// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/sha256.h"
#include "core/files/utctime.h"

#include <QCryptographicHash>
#include <QDateTime>
#include <QTest>

using namespace klineage::files;

class TestDigests : public QObject
{
    Q_OBJECT

private slots:
    void knownDigests_data();
    void knownDigests();
    void everyLengthAroundABlockAgrees();
    void piecesMakeTheSameDigest();
    void timesAreIsoUtc();
    void nowIsNow();
};

void TestDigests::knownDigests_data()
{
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QByteArray>("digest");
    // FIPS 180-4 examples.
    QTest::newRow("empty") << QByteArray("")
                           << QByteArray("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    QTest::newRow("abc") << QByteArray("abc")
                         << QByteArray("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    QTest::newRow("two blocks") << QByteArray("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")
                                << QByteArray(
                                       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    QTest::newRow("a million a") << QByteArray(
        1000000, 'a') << QByteArray("cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

void TestDigests::knownDigests()
{
    QFETCH(QByteArray, text);
    QFETCH(QByteArray, digest);
    QCOMPARE(QByteArray::fromStdString(sha256Hex(text.toStdString())), digest);
}

void TestDigests::everyLengthAroundABlockAgrees()
{
    for (int length = 0; length <= 200; ++length) {
        const QByteArray text(length, static_cast<char>(length));
        const QByteArray expected = QCryptographicHash::hash(text, QCryptographicHash::Sha256).toHex();
        QCOMPARE(QByteArray::fromStdString(sha256Hex(text.toStdString())), expected);
    }
}

void TestDigests::piecesMakeTheSameDigest()
{
    const std::string text(1000, 'x');
    Sha256 whole;
    whole.update(text);
    Sha256 pieces;
    for (std::size_t i = 0; i < text.size(); i += 7)
        pieces.update(std::string_view(text).substr(i, 7));
    QVERIFY(whole.finish() == pieces.finish());
}

void TestDigests::timesAreIsoUtc()
{
    using namespace std::chrono;
    const auto at = [](std::int64_t ms) { return formatUtc(system_clock::time_point(milliseconds(ms))); };
    QCOMPARE(at(0), std::string("1970-01-01T00:00:00.000Z"));
    QCOMPARE(at(951782400007), std::string("2000-02-29T00:00:00.007Z"));
    QCOMPARE(at(-1), std::string("1969-12-31T23:59:59.999Z"));
}

void TestDigests::nowIsNow()
{
    const QDateTime read = QDateTime::fromString(QString::fromStdString(nowUtc()), Qt::ISODateWithMs);
    QVERIFY(read.isValid());
    QCOMPARE(read.timeSpec(), Qt::UTC);
    QVERIFY(std::abs(read.msecsTo(QDateTime::currentDateTimeUtc())) < 60'000);
}

QTEST_GUILESS_MAIN(TestDigests)
#include "tst_digests.moc"
