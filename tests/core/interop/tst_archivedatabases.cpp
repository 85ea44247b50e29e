// SPDX-License-Identifier: GPL-3.0-or-later
//
// SQLite files of ShinkaEvolve, and others that look like them, as lineages. They are made here, after the public schema.
#include "core/files/sha256.h"
#include "core/interop/archives/formats/readers.h"
#include "tests/core/interop/archivefixture.h"

#include <QtTest>

#if KLINEAGE_HAVE_SQLITE
#include <sqlite3.h>
#endif

using namespace klineage;
using namespace klineage::interop;
namespace fs = std::filesystem;

class TestArchiveDatabases
    : public QObject
    , private ArchiveFixture
{
    Q_OBJECT

private:
    void database(const std::string &name, const std::vector<std::string> &statements) const
    {
        // In the body: moc does not know the macro.
#if KLINEAGE_HAVE_SQLITE
        sqlite3 *opened = nullptr;
        QCOMPARE(sqlite3_open((root() / name).c_str(), &opened), SQLITE_OK);
        for (const std::string &sql : statements) {
            char *problem = nullptr;
            const int done = sqlite3_exec(opened, sql.c_str(), nullptr, nullptr, &problem);
            QVERIFY2(done == SQLITE_OK, problem);
        }
        sqlite3_close(opened);
#else
        Q_UNUSED(name)
        Q_UNUSED(statements)
#endif
    }
    static std::string row(const std::string &id, const std::string &parent, int generation,
                           const std::string &score, const std::string &correct, int number,
                           const std::string &metadata = "{}")
    {
        return "INSERT INTO programs (id, code, language, parent_id, generation, timestamp, combined_score, correct, "
               "island_idx, public_metrics, metadata) VALUES ('"
               + id + "', '" + kernelCode(number) + "', 'opencl', "
               + (parent.empty() ? "NULL" : "'" + parent + "'") + ", " + std::to_string(generation)
               + ", 0.5, " + score + ", " + correct + ", 1, '{\"ms\": 2}', '" + metadata + "')";
    }
    static constexpr const char *table =
        "CREATE TABLE programs (id TEXT PRIMARY KEY, code TEXT NOT NULL, language TEXT NOT NULL, parent_id TEXT, "
        "generation INTEGER NOT NULL, timestamp REAL NOT NULL, code_diff TEXT, combined_score REAL, public_metrics TEXT, "
        "private_metrics TEXT, correct BOOLEAN DEFAULT 0, metadata TEXT, island_idx INTEGER)";

private slots:
    void init()
    {
        begin();
    }

    void aDatabase()
    {
        if (!readsSqlite())
            QSKIP("This build has no SQLite.");
        database("a?b#c%41.sqlite",
                 {table, "CREATE TABLE metadata_store (key TEXT PRIMARY KEY, value TEXT)",
                  "INSERT INTO metadata_store VALUES ('best_program_id', 'c')",
                  row("a", "", 0, "1.0", "1", 0), row("b", "a", 1, "9.0", "0", 1),
                  row("c", "a", 1, "2.0", "1", 2,
                      R"({"patch_name": "tile_rows", "patch_description": "Rows in tiles.\nMore."})"),
                  row("d", "b", 2, "'high'", "'yes'", 3, "{torn")});
        const std::string before = *files::readFile(root() / "a?b#c%41.sqlite", 1 << 20);
        const lineage::Lineage lineage = mustImport("a?b#c%41.sqlite", options());
        QCOMPARE(*files::readFile(root() / "a?b#c%41.sqlite", 1 << 20), before);
        QVERIFY(!fs::exists(root() / "a?b#c%41.sqlite-wal"));
        QCOMPARE(lineage.key(), std::string("rows/pocl-shinka"));
        QCOMPARE(lineage.states.size(), std::size_t{2});
        QCOMPARE(lineage.transitions[0].summary, std::string("ShinkaEvolve says: tile_rows: Rows in tiles."));
        QCOMPARE(lineage.attempts.size(), std::size_t{2});
        QVERIFY(lineage.origin.find("sha-256 of the file " + files::sha256Hex(before)) != std::string::npos);
        QCOMPARE(
            lineage.attempts[0].reason,
            std::string(
                "ShinkaEvolve says of d: no score, correct or not is not stated there; ms 2; its parent is "
                "b."));
        QCOMPARE(lineage.attempts[1].reason,
                 std::string("ShinkaEvolve says of b: combined_score 9, not correct; ms 2."));
        QVERIFY(isNoted("were taken for not stated: 2 (row 4, row 4)"));
        QVERIFY(isNoted("are no JSON were passed over: 1 (row 4)"));
    }

    void anOlderDatabaseInAFolder()
    {
        if (!readsSqlite())
            QSKIP("This build has no SQLite.");
        fs::create_directories(root() / "results");
        database(
            "results/programs.sqlite",
            {"CREATE TABLE programs (id INTEGER, code BLOB, parent_id, combined_score)",
             "INSERT INTO programs VALUES (1, x'" + QByteArray(kernelCode(0).c_str()).toHex().toStdString()
                 + "', NULL, 5), (2, NULL, 1, 7), (3, x'ff00', 1, 8), (1, 'twice', 1, 9), (NULL, 'x', 1, 9)"});
        database("results/prompts.sqlite", {"CREATE TABLE prompts (id)"});
        write("results/programs.sqlite-wal", "log");
        const lineage::Lineage lineage = mustImport("results", options());
        QCOMPARE(lineage.states.size(), std::size_t{1});
        QCOMPARE(lineage.states[0].title, std::string("ShinkaEvolve's combined_score 5"));
        QVERIFY(isNoted("The database of prompts beside it was not read."));
        QVERIFY(isNoted("programs.sqlite-wal, which is not read"));
        QVERIFY(isNoted("1 (2), which has no code"));
        QVERIFY(isNoted("1 (3), which is no UTF-8 text"));
        QVERIFY(isSkipped("row 5", "It has no id."));
        database("results/other.db", {"CREATE TABLE t (id)"});
        fs::remove_all(m_rows.directory / "lineages");
        write("results/other.db-wal", "log");
        const std::string other = reasonOf("results/other.db");
        QVERIFY2(other.find("no table 'programs'. Beside the file lies other.db-wal") != std::string::npos,
                 other.c_str());
        QVERIFY(reasonOf("results").find("several SQLite files (other.db and programs.sqlite)")
                != std::string::npos);
    }

    void databasesThatAreRefused_data()
    {
        QTest::addColumn<QStringList>("statements");
        QTest::addColumn<QString>("why");
        const QString real = "CREATE TABLE other (id, code)";
        QTest::newRow("another table") << QStringList{real} << "no table 'programs'";
        QTest::newRow("a view") << QStringList{real, "CREATE VIEW programs AS SELECT id, code FROM other"}
                                << "is no table (view)";
        QTest::newRow("an index") << QStringList{real, "CREATE INDEX programs ON other (id)"}
                                  << "is no table (index)";
        QTest::newRow("a virtual table")
            << QStringList{"CREATE VIRTUAL TABLE programs USING fts5(id, code)"} << "is a virtual table";
        QTest::newRow("no ids") << QStringList{"CREATE TABLE programs (code)"} << "no column 'id'";
        QTest::newRow("made up code")
            << QStringList{"CREATE TABLE programs (id, code AS (hex(id)))"} << "no column 'code'";
        QTest::newRow("no row ids")
            << QStringList{"CREATE TABLE programs (id PRIMARY KEY, code) WITHOUT ROWID"} << "no row ids";
        QTest::newRow("empty") << QStringList{table} << "none of its 0 programs";
    }

    void databasesThatAreRefused()
    {
        if (!readsSqlite())
            QSKIP("This build has no SQLite.");
        QFETCH(QStringList, statements);
        QFETCH(QString, why);
        std::vector<std::string> all;
        for (const QString &statement : statements)
            all.push_back(statement.toStdString());
        database("a.sqlite", all);
        const std::string reason = reasonOf("a.sqlite");
        QVERIFY2(reason.find(why.toStdString()) != std::string::npos, reason.c_str());
    }

    /// A value that is copied or destroyed level by level would end the program.
    void deepMetadata()
    {
        if (!readsSqlite())
            QSKIP("This build has no SQLite.");
        constexpr std::size_t deep = 200'000;
        const std::string nested =
            "{\"patch_name\": " + std::string(deep, '[') + std::string(deep, ']') + '}';
        database("deep.sqlite", {table, row("a", "", 0, "1.0", "1", 0, nested)});
        QCOMPARE(mustImport("deep.sqlite", options()).states.size(), std::size_t{1});
    }

    /// Cut or overwritten anywhere, it is read as far as it can be, and nothing else happens.
    void aBrokenDatabase()
    {
        if (!readsSqlite())
            QSKIP("This build has no SQLite.");
        std::vector<std::string> statements{table};
        for (int i = 0; i < 60; ++i)
            statements.push_back(row("p" + std::to_string(i), "p0", i, std::to_string(i), "1", i));
        database("whole.sqlite", statements);
        const std::string whole = *files::readFile(root() / "whole.sqlite", 8 << 20);
        ArchiveOptions dry = options();
        dry.dryRun = true;
        int read = 0;
        for (std::size_t at = 16; at < whole.size(); at += 1531) {
            std::string broken = whole;
            for (std::size_t i = at; i < std::min(at + 40, broken.size()); ++i)
                broken[i] = static_cast<char>(broken[i] ^ 0x5a);
            for (const std::string &text : {broken, whole.substr(0, at)}) {
                write("broken.sqlite", text);
                const auto entries = importArchive(root() / "broken.sqlite", m_rows, dry);
                QVERIFY2(entries, entries ? "" : entries.error().message.c_str());
                read += entries->front().name.empty() ? 0 : 1;
            }
        }
        QVERIFY(read > 0);
        QVERIFY(!fs::exists(m_rows.directory / "lineages"));
    }
    void withoutSqlite()
    {
        if (readsSqlite())
            QSKIP("This build has SQLite.");
        write("a.sqlite", std::string("SQLite format 3\0", 16));
        const auto entries = importArchive(root() / "a.sqlite", m_rows, options());
        QVERIFY(!entries && entries.error().code == ErrorCode::Unavailable);
        QCOMPARE(entries.error().message, std::string("This build cannot read SQLite files."));
    }
};

QTEST_GUILESS_MAIN(TestArchiveDatabases)
#include "tst_archivedatabases.moc"
