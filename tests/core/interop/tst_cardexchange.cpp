// SPDX-License-Identifier: GPL-3.0-or-later
// Cards of other systems in, ours out. The data are made up: tests/data/foreigncards/README.md.
#include "core/files/atomicfile.h"
#include "core/interop/cards/frontmatter.h"
#include "core/interop/cards/importcards.h"
#include "core/interop/cards/richjson.h"
#include "tests/paths.h"

#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <filesystem>
#include <set>

using namespace klineage;
using namespace klineage::interop;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

const fs::path foreign = klineage::test::sourcePath("/tests/data/foreigncards");
const ForeignLibrary library{"a library", "unknown"};

const ImportEntry &entryOf(const std::vector<ImportEntry> &entries, const std::string &source)
{
    const auto it = std::find_if(entries.begin(), entries.end(),
                                 [&](const ImportEntry &entry) { return entry.source == source; });
    if (it == entries.end())
        qFatal("no entry for %s", source.c_str());
    return *it;
}

std::vector<ImportEntry> mustImport(const fs::path &from, const skills::CardStore &store,
                                    const ImportOptions &options = {})
{
    Result<std::vector<ImportEntry>> entries = importCards(from, store, options);
    if (!entries)
        qFatal("%s", entries.error().message.c_str());
    return std::move(*entries);
}

/// What the Agent Skills standard demands of a SKILL.md, in the words of its validator's checks.
QString skillProblem(const std::string &text, const std::string &folder)
{
    const Result<FrontMatter> front = parseFrontMatter(text);
    if (!front)
        return QString::fromStdString(front.error().message);
    const std::string name = textOf(front->values, "name");
    const std::string description = textOf(front->values, "description");
    if (name != folder || name.empty() || name.size() > 64 || name.front() == '-' || name.back() == '-'
        || name.find("--") != std::string::npos
        || name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos)
        return "name";
    if (description.empty() || QString::fromStdString(description).size() > 1024)
        return "description";
    for (const auto &[key, value] : front->values.items()) {
        if (key != "name" && key != "description" && key != "license" && key != "metadata")
            return "unexpected " + QString::fromStdString(key);
    }
    for (const auto &[key, value] : front->values["metadata"].items()) {
        if (!value.is_string())
            return "metadata";
    }
    return {};
}

} // namespace

class TestCardExchange : public QObject
{
    Q_OBJECT

private:
    std::unique_ptr<QTemporaryDir> m_folder;
    fs::path root() const { return m_folder->path().toStdString(); }
    skills::CardStore store() const { return skills::CardStore(root() / "skills"); }
    void write(const fs::path &file, const std::string &text) const
    {
        fs::create_directories((root() / file).parent_path());
        QVERIFY(files::writeFileAtomic(root() / file, text));
    }

private slots:
    void init()
    {
        m_folder = std::make_unique<QTemporaryDir>();
        fs::create_directories(root() / "skills");
    }

    void aFolder()
    {
        const std::vector<ImportEntry> entries = mustImport(foreign, store());
        QCOMPARE(entryOf(entries, "tma.multicast.loads_v2").name, std::string("tma-multicast-loads-v2"));
        QCOMPARE(entryOf(entries, "rows/vector.rows").name, std::string("vector-rows"));
        QCOMPARE(entryOf(entries, "pitch-alignment").name, std::string("pitch-alignment"));
        QCOMPARE(entryOf(entries, "memory.json, card 1").name, std::string("stage-operands"));
        QCOMPARE(entryOf(entries, "memory.json, card 2").name, std::string("stage-operands-2"));
        QCOMPARE(entryOf(entries, "memory.json, card 3").reason, std::string("Its intent is empty."));
        QCOMPARE(entryOf(entries, "lineage.json").name, std::string("from-a-lineage"));
        QCOMPARE(entryOf(entries, "broken.front").reason,
                 std::string("Line 3 of its front matter: a tab cannot indent."));
        QCOMPARE(entryOf(entries, "notes").reason, std::string("It has no SKILL.md and no JSON file."));
        std::vector<Error> problems;
        const std::vector<skills::CardRecord> records = store().readAll(&problems);
        QCOMPARE(records.size(), std::size_t{6});
        QVERIFY(problems.empty());
        for (const skills::CardRecord &record : records) {
            QVERIFY2(record.notices.empty(), record.card.name.c_str());
            QVERIFY(record.life() == skills::Life::Hypothesis);
            QCOMPARE(record.card.imported->origin, std::string("foreigncards"));
            for (const skills::LintFinding &finding :
                 skills::lintCard(record.card, record.carrier, record.buildingBlock))
                QVERIFY2(finding.severity == skills::LintFinding::Severity::Warning,
                         (record.card.name + ": " + finding.field + ": " + finding.message).c_str());
            const std::string markdown = skills::writeSkillMarkdown(record);
            QVERIFY2(skillProblem(markdown, record.card.name).isEmpty(), record.card.name.c_str());
            QVERIFY(markdown.find("A hypothesis: no roundtrip has admitted it yet.") != std::string::npos);
        }
        // What was imported is known again, under whatever name it has now.
        const std::vector<ImportEntry> again = mustImport(foreign, store());
        QCOMPARE(again.size(), entries.size());
        QCOMPARE(std::count_if(again.begin(), again.end(), [](const ImportEntry &e) { return e.isThere; }),
                 6);
    }

    void aFlatSkill()
    {
        mustImport(foreign, store());
        const skills::CardRecord record = *store().read("tma-multicast-loads-v2");
        const skills::Card &card = record.card;
        QCOMPARE(card.intent.text,
                 std::string("Load a tile that several blocks of a cluster share once, by a multicast"));
        QCOMPARE(card.preconditions.size(), std::size_t{3});
        QCOMPARE(card.preconditions[1].text,
                 std::string("The tile's rows are aligned to 16 bytes: bulk copies need it."));
        QCOMPARE(card.scope.cases, (std::vector<std::string>{"gemm", "grouped-gemm"}));
        QCOMPARE(card.scope.languages, std::vector<std::string>{"cuda"});
        QCOMPARE(card.scope.platforms, std::vector<std::string>{"sm90"});
        QCOMPARE(card.imported->form, std::string("klineage-skill"));
        QCOMPARE(card.imported->name, std::string("TMA.multicast.loads_v2"));
        QCOMPARE(card.imported->license, std::string("Example licence 1.0"));
        QCOMPARE(card.carrierFile, std::string("carrier.cu"));
        for (const char *part : {"// Code Change Snippet / Before\n__global__",
                                 "multicast(a); } // ``` stays", "// Code Change Snippet / After\nlaunch<<<"})
            QVERIFY2(record.carrier.find(part) != std::string::npos, part);
        QVERIFY(record.carrier.find("make") == std::string::npos);
        const auto original = files::readFile(record.directory / "original.md", 1 << 20);
        QCOMPARE(*original, *files::readFile(foreign / "tma.multicast.loads_v2" / "SKILL.md", 1 << 20));
        QCOMPARE(store().read("vector-rows")->card.intent.text,
                 std::string("Read rows four elements at a time"));
        QCOMPARE(store().read("vector-rows")->card.scope.platforms, std::vector<std::string>{"sm90"});
    }

    void anAgentSkill()
    {
        mustImport(foreign, store());
        const skills::CardRecord record = *store().read("pitch-alignment");
        QCOMPARE(record.card.intent.text, std::string("Pads rows so that each begins on a sector."));
        QCOMPARE(record.card.preconditions.at(0).text,
                 std::string("Use when rows are read by whole warps and the pitch is odd."));
        QCOMPARE(record.card.imported->license, std::string("Apache-2.0"));
        QVERIFY(skills::writeSkillMarkdown(record).find("license: \"Apache-2.0\"") != std::string::npos);
        QVERIFY(!record.carrier.empty());
    }

    /// Every field that the rich form has comes back, of every card that ships.
    void richJsonRoundTrips()
    {
        std::vector<skills::CardRecord> records =
            skills::CardStore(klineage::test::sourcePath("/skills")).readAll();
        QVERIFY(records.size() > 30);
        skills::CardRecord all = records.front(); // with what few cards have
        all.card.provides = {{"k-loop", "shared_tile"}};
        all.card.conflicts = {{"k-loop", "register_tile"}};
        records.push_back(all);
        const auto texts = [](const std::vector<skills::Claim> &claims) {
            std::vector<std::string> out;
            for (const skills::Claim &claim : claims)
                out.push_back(claim.text);
            return out;
        };
        for (const skills::CardRecord &record : records) {
            const char *const name = record.card.name.c_str();
            const json written = json::parse(richJson(record, {}).dump());
            const auto read = readCardJson(written.dump(), "cards", library);
            QVERIFY2(read && read->size() == 1 && read->at(0), name);
            const skills::Card &card = read->at(0)->card;
            QCOMPARE(card.name, record.card.name);
            QCOMPARE(card.intent.text, record.card.intent.text);
            QVERIFY2(card.anchor.text == record.card.anchor.text, name);
            QVERIFY2(texts(card.preconditions) == texts(record.card.preconditions), name);
            QVERIFY2(texts(card.effects) == texts(record.card.effects), name);
            QVERIFY2(texts(card.risks) == texts(record.card.risks), name);
            QVERIFY2(card.scope == record.card.scope, name);
            QVERIFY2(card.provides == record.card.provides && card.requirements == record.card.requirements
                         && card.conflicts == record.card.conflicts,
                     name);
            QCOMPARE(std::set<std::string>(card.evidence.begin(), card.evidence.end()),
                     std::set<std::string>(record.card.evidence.begin(), record.card.evidence.end()));
            // The form says what a card is about with its evidence alone.
            QVERIFY2(record.card.evidence.empty() || card.category == record.card.category, name);
            QVERIFY2(record.card.evidence.empty() || card.locus == record.card.locus, name);
            QCOMPARE(read->at(0)->carrier, record.carrier);
            QCOMPARE(card.imported->license, skills::licenseOf(record.card));
            QCOMPARE(written.at("verification_log").size(), record.verifications.size());
        }
    }

    void theLibraryAsSkills()
    {
        for (const skills::CardRecord &record :
             skills::CardStore(klineage::test::sourcePath("/skills")).readAll()) {
            const std::string text = skills::writeSkillMarkdown(record);
            const QString problem = skillProblem(text, record.card.name);
            QVERIFY2(problem.isEmpty(),
                     qPrintable(QString::fromStdString(record.card.name) + ": " + problem));
            const auto read = readSkillFile(text, record.card.name, library);
            QVERIFY2(read, record.card.name.c_str());
            QCOMPARE(read->card.name, record.card.name);
            QCOMPARE(read->card.category, record.card.category);
            QCOMPARE(read->card.locus, record.card.locus);
            QCOMPARE(read->card.imported->license, skills::licenseOf(record.card));
            // The description begins with the intent; the conditions of use follow.
            const std::string intent = record.card.intent.text.substr(0, 40);
            QVERIFY2(read->card.intent.text.starts_with(intent.substr(0, intent.find_first_of(".\n"))),
                     record.card.name.c_str());
            QVERIFY2(read->card.preconditions.empty() == record.card.preconditions.empty(),
                     record.card.name.c_str());
            QVERIFY(read->carrier.find(record.carrier) != std::string::npos);
        }
    }

    void theSkillForAgents()
    {
        const auto text =
            files::readFile(klineage::test::sourcePath("/resources/agents/klineage/SKILL.md"), 1 << 20);
        QVERIFY(text);
        const QString problem = skillProblem(*text, "klineage");
        QVERIFY2(problem.isEmpty(), qPrintable(problem));
    }

    void names_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<bool>("accepted");
        QTest::addColumn<QString>("mapped");
        QTest::newRow("plain") << "stage-tiles" << true << "stage-tiles";
        QTest::newRow("hyphen first") << "-x" << false << "x";
        QTest::newRow("hyphen last") << "x-" << false << "x";
        QTest::newRow("two hyphens") << "a--b" << false << "a-b";
        QTest::newRow("dots") << "TMA.Multi_cast" << false << "tma-multi-cast";
        QTest::newRow("nothing left") << "…" << false << "card";
        QTest::newRow("a path") << "../../etc/passwd" << false << "etc-passwd";
        QTest::newRow("long") << QString(63, 'a') + ".b" << false << QString(63, 'a');
    }
    void names()
    {
        QFETCH(QString, name);
        QTEST(skills::isCardName(name.toStdString()), "accepted");
        QTEST(QString::fromStdString(cardNameFrom(name.toStdString())), "mapped");
        QVERIFY(skills::isCardName(cardNameFrom(name.toStdString())));
    }

    void platforms()
    {
        for (const auto &[said, here] : {std::pair{"nvidia-sm90a-cuda13", "sm90"},
                                         {"SM_100", "sm100"},
                                         {"NVIDIA H200", "sm90"},
                                         {"sm89", "sm89"},
                                         {"pocl", "pocl"},
                                         {"gfx 942", "gfx-942"},
                                         {"prism90", "prism90"}})
            QCOMPARE(platformFrom(said), std::string(here));
    }

    void hostileFolders()
    {
        write("in/link-target/SKILL.md", "---\nskill_id: secret\nintent: i\n---\n");
        fs::create_directories(root() / "from" / "linked.card");
        fs::create_directory_symlink(root() / "in" / "link-target", root() / "from" / "linked");
        fs::create_symlink(root() / "in" / "link-target" / "SKILL.md",
                           root() / "from" / "linked.card" / "SKILL.md");
        write("from/up/SKILL.md", "---\nskill_id: ../../../escaped\nintent: i\n---\n");
        write("from/long/SKILL.md", "---\nskill_id: long\nintent: i\n---\n" + std::string(2 << 20, 'x'));
        write("from/bytes/SKILL.md", "---\nskill_id: bytes\nintent: \xff\n---\n");
        write("from/nul/SKILL.md", std::string("---\nskill_id: n\nintent: a\0b\n---\n", 33));
        write("from/code/SKILL.md",
              "---\nskill_id: code\nintent: i\n---\n```cuda\n" + std::string(300 << 10, 'x'));
        write("from/deep.json", std::string(100000, '['));
        write("from/a/b/c/d/e/f/g/SKILL.md", "---\nskill_id: deep\nintent: i\n---\n");
        const std::vector<ImportEntry> entries = mustImport(root() / "from", store());
        QCOMPARE(entryOf(entries, "up").name, std::string("escaped"));
        QCOMPARE(store().readAll().size(), std::size_t{1});
        for (const char *source : {"linked", "linked.card"})
            QVERIFY(entryOf(entries, source).reason.find("link") != std::string::npos);
        QVERIFY(entryOf(entries, "bytes").reason.find("UTF-8") != std::string::npos);
        QVERIFY(entryOf(entries, "nul").reason.find("UTF-8") != std::string::npos);
        QVERIFY(entryOf(entries, "code").reason.find("256 KiB") != std::string::npos);
        QVERIFY(entryOf(entries, "deep.json").reason.find("nested deeper") != std::string::npos);
        QVERIFY(!entryOf(entries, "long").reason.empty());
        QVERIFY(entryOf(entries, "a/b/c/d/e/f/g").reason.find("six folders") != std::string::npos);
        QVERIFY(!importCards(root() / "nothing", store(), {}));
        ImportOptions dry;
        dry.dryRun = true;
        write("one/SKILL.md", "---\nskill_id: one\nintent: i\n---\n");
        QCOMPARE(mustImport(root() / "one", store(), dry).at(0).name, std::string("one"));
        QCOMPARE(store().readAll().size(), std::size_t{1});
    }

    void frontMatter_data()
    {
        QTest::addColumn<QString>("yaml");
        QTest::addColumn<QString>("expected"); // JSON with ` for ", or a piece of the message
        QTest::newRow("scalars") << "a: one # no\nb: \"t\\u0077o\"\nc: 'it''s'\nd:\ne: 1"
                                 << "{`a`:`one`,`b`:`two`,`c`:`it's`,`d`:``,`e`:`1`}";
        QTest::newRow("lists") << "a:\n- x\n- 'y: z'\nb:\n  - k: v\n    l: w\nc: [1, [2], {d: e}]"
                               << "{`a`:[`x`,`y: z`],`b`:[{`k`:`v`,`l`:`w`}],`c`:[`1`,[`2`],{`d`:`e`}]}";
        QTest::newRow("blocks") << "a: |\n  one\n    two\n\n  three\nb: >\n  x\n  y\nc: p\n  q"
                                << "{`a`:`one\\n  two\\n\\nthree`,`b`:`x y`,`c`:`p q`}";
        QTest::newRow("brackets over lines") << "a: [x,\n  y]\nb: z"
                                             << "{`a`:[`x`,`y`],`b`:`z`}";
        QTest::newRow("twice") << "a: 1\na: 2"
                               << "Line 3 of its front matter: the key is there twice.";
        QTest::newRow("anchor") << "a: &x 1"
                                << "anchors, aliases and tags";
        QTest::newRow("no key") << "just words"
                                << "a key and a colon";
        QTest::newRow("open") << "a: [x, y"
                              << "is not closed";
        QTest::newRow("open quote") << "a: \"x"
                                    << "does not end on its line";
        QTest::newRow("indent") << "a: 1\n b: 2\nc: 3"
                                << "{`a`:`1 b: 2`,`c`:`3`}";
        QTest::newRow("deep") << "a: " + QString(20, '[') << "nested too deep";
    }
    void frontMatter()
    {
        QFETCH(QString, yaml);
        QFETCH(QString, expected);
        expected.replace('`', '"');
        const Result<FrontMatter> front = parseFrontMatter("---\n" + yaml.toStdString() + "\n---\nbody\n");
        if (expected.startsWith('{')) {
            QVERIFY2(front, front ? "" : front.error().message.c_str());
            QCOMPARE(QString::fromStdString(front->values.dump()), expected);
            QCOMPARE(front->body, std::string("body\n"));
        } else {
            QVERIFY(!front);
            QVERIFY2(QString::fromStdString(front.error().message).contains(expected),
                     front.error().message.c_str());
        }
    }
};

QTEST_GUILESS_MAIN(TestCardExchange)
#include "tst_cardexchange.moc"
