// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/atomicfile.h"
#include "core/files/sha256.h"
#include "core/trial/listing.h"
#include "core/trial/trial.h"

#include <nlohmann/json.hpp>

#include <QTemporaryDir>
#include <QTest>

using namespace klineage;
using namespace klineage::gate;

namespace {

Listing someListing()
{
    return {"NVRTC 13.0.48, sm_90a",
            {{"gemm", 0, 41, 0, {}, "LDC R1, c[0x0][0x28]"},
             {"gemm", 0x1f0, 42, 17, {{"long_scoreboard", 12}, {"selected", 5}}, "IADD3 R2, R2, 0x1, RZ"},
             {"tail", 0, 0, 1, {{"wait", 1}}, "EXIT"}}};
}

} // namespace

class TestListing : public QObject
{
    Q_OBJECT

private slots:
    void whatIsWrittenIsRead()
    {
        const std::string text = writeListing(someListing());
        const auto read = parseListing(text, "a.sass");
        QVERIFY2(read.has_value(), read ? "" : read.error().message.c_str());
        QCOMPARE(read->compiler, someListing().compiler);
        QCOMPARE(read->instructions.size(), std::size_t{3});
        QCOMPARE(read->instructions[1].offset, std::uint64_t{0x1f0});
        QCOMPARE(read->instructions[1].stalls, someListing().instructions[1].stalls);
        QCOMPARE(read->instructions[2].kernel, std::string("tail"));
        QCOMPARE(writeListing(*read), text);
    }

    void tabsAndLineEndsOfACompilerDoNoHarm()
    {
        Listing listing = someListing();
        listing.instructions[0].text = "A\tB\nC";
        const auto read = parseListing(writeListing(listing), "a.sass");
        QVERIFY(read.has_value());
        QCOMPARE(read->instructions[0].text, std::string("A B C"));
    }

    void kernelsWhoseNamesDifferInControlCharactersAreOne()
    {
        Listing listing = someListing();
        listing.instructions[0].kernel = "gemm\t";
        listing.instructions[1].kernel = "gemm\x05";
        const std::string text = writeListing(listing);
        const auto read = parseListing(text, "a.sass");
        QVERIFY(read.has_value());
        QCOMPARE(writeListing(*read), text);
    }

    void brokenListingsAreRefusedWithTheirLine_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QByteArray>("where");
        QTest::newRow("empty") << QByteArray() << QByteArray("a.sass:1:");
        QTest::newRow("other file") << QByteArray("hello\n") << QByteArray("a.sass:1:");
        const QByteArray head = "# machine code by x\n";
        QTest::newRow("no line end") << QByteArray("# machine code by x") << QByteArray("a.sass:1:");
        QTest::newRow("no kernel") << head + "0000\t1\t0\t\tEXIT\n" << QByteArray("a.sass:2:");
        QTest::newRow("few fields") << head + ".kernel k\n0000\t1\t0\tEXIT\n" << QByteArray("a.sass:3:");
        QTest::newRow("negative") << head + ".kernel k\n0000\t-1\t0\t\tEXIT\n" << QByteArray("a.sass:3:");
        QTest::newRow("stall") << head + ".kernel k\n0000\t1\t0\twait\tEXIT\n" << QByteArray("a.sass:3:");
        QTest::newRow("stall twice") << head + ".kernel k\n0000\t1\t0\ta=1 a=2\tEXIT\n"
                                     << QByteArray("a.sass:3:");
        QTest::newRow("no text") << head + ".kernel k\n0000\t1\t0\t\t\n" << QByteArray("a.sass:3:");
    }

    void brokenListingsAreRefusedWithTheirLine()
    {
        QFETCH(QByteArray, text);
        QFETCH(QByteArray, where);
        const auto read = parseListing(text.toStdString(), "a.sass");
        QVERIFY(!read);
        QVERIFY2(read.error().message.starts_with(where.toStdString()), read.error().message.c_str());
    }

    void aFolderKeepsThemByContent()
    {
        QTemporaryDir folder;
        const std::filesystem::path path = folder.path().toStdString();
        const std::string text = writeListing(someListing());
        QVERIFY(storeListing(path, text).has_value());
        QVERIFY(storeListing(path, text).has_value());
        const std::string sha = files::sha256Hex(text);
        QCOMPARE(readListing(path, sha)->instructions.size(), std::size_t{3});
        QVERIFY(files::writeFileAtomic(path / listingFileName(sha), text + "x").has_value());
        QCOMPARE(readListing(path, sha).error().code, ErrorCode::Conflict);
    }

    void aTrialCarriesItsListingToWhoKeepsIt()
    {
        Trial trial;
        trial.id = "0123456789abcdef";
        trial.time = "2026-01-31T12:34:56Z";
        trial.workload = "gemm";
        trial.candidate = std::string(64, 'a');
        trial.environment = {"sm90", "a GPU", {}};
        trial.listingText = writeListing(someListing());
        trial.listing = files::sha256Hex(trial.listingText);
        QCOMPARE(carryTrial(trial).get<Trial>().listingText, trial.listingText);
        const auto stored = parseTrial(writeTrial(trial), "t.jsonl:1");
        QVERIFY(stored.has_value());
        QCOMPARE(stored->listing, trial.listing);
        QVERIFY(stored->listingText.empty());
        trial.listing = std::string(64, 'b');
        bool refused = false;
        try {
            (void)carryTrial(trial).get<Trial>();
        } catch (const nlohmann::json::exception &) {
            refused = true;
        }
        QVERIFY(refused);
    }
};

QTEST_GUILESS_MAIN(TestListing)
#include "tst_listing.moc"
