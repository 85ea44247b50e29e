// SPDX-License-Identifier: GPL-3.0-or-later
//
// Archives of evolutionary searches as lineages: what is read, what is refused and in which words. The archives are this test's own, after
// the public schemas.
#include "tests/core/interop/archivefixture.h"

#include <QtTest>
#include <nlohmann/json.hpp>

#include <fstream>

using namespace klineage;
using namespace klineage::interop;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

json program(const std::string &id, const std::string &parent, int generation, double score, int number)
{
    return {{"id", id},
            {"code", kernelCode(number)},
            {"language", "opencl"},
            {"parent_id", parent.empty() ? json() : json(parent)},
            {"generation", generation},
            {"iteration_found", generation},
            {"metrics", {{"combined_score", score}, {"runtime_ms", 2.5}}},
            {"metadata", {{"island", 0}, {"changes", "Change 1: Replace 2 lines\nwith 3"}}}};
}

} // namespace

class TestArchives
    : public QObject
    , private ArchiveFixture
{
    Q_OBJECT

private:
    void writeProgram(const std::string &checkpoint, const json &program) const
    {
        write(fs::path(checkpoint) / "programs" / (program["id"].get<std::string>() + ".json"),
              program.dump());
    }
    void writeStep(int step, int node, const json &parent, bool correct, double speedup, int best,
                   const std::string &code) const
    {
        const std::string begin = "ada/step_" + std::to_string(step);
        write(begin + ".py", code);
        write(begin + "_log.json", json{{"node_id", node},
                                        {"parent_node_id", parent},
                                        {"depth", step},
                                        {"created_by", step == 1 ? "large_step" : "small_step"},
                                        {"score", {1, correct ? 1 : 0, speedup}},
                                        {"global_best_node_id", best}}
                                       .dump(4));
        write(begin + "_metrics.json", json{{"compiled", true},
                                            {"correctness", correct},
                                            {"metadata", json::object()},
                                            {"runtime", 12.5},
                                            {"runtime_stats", {{"fast_p", speedup}}}}
                                           .dump(4));
    }

private slots:
    void init() { begin(); }

    void aCheckpoint()
    {
        writeProgram("c/checkpoint_9", program("a", "", 0, 1.0, 0));
        const std::string checkpoint = "c/checkpoint_10";
        writeProgram(checkpoint, program("a", "", 0, 1.0, 0));
        writeProgram(checkpoint, program("b", "a", 1, 1.5, 1));
        writeProgram(checkpoint, program("c", "b", 2, 2.5, 2));
        writeProgram(checkpoint, program("d", "b", 2, 0.5, 3));
        writeProgram(checkpoint, program("e", "d", 3, 0.25, 4));
        writeProgram(checkpoint, program("f", "c", 3, 2.5, 2)); // a migrant: the same text
        write(
            "c/checkpoint_10/metadata.json",
            R"({"best_program_id": "f", "islands": [["a", "b"], ["c", "d", "e", "f"]], "last_iteration": 10})");
        write("c/checkpoint_10/best_program.cl", kernelCode(2));
        const lineage::Lineage lineage = mustImport("c", options());
        QCOMPARE(m_entries.size(), std::size_t{1});
        QCOMPARE(lineage.key(), std::string("rows/pocl-openevolve"));
        QVERIFY(lineage.notices.empty());
        QCOMPARE(lineage.states.size(), std::size_t{3});
        QCOMPARE(lineage.states[2].title,
                 std::string("generation 2, island 1, OpenEvolve's combined_score 2.5"));
        QCOMPARE(lineage.transitions[1].category, std::string("other"));
        QCOMPARE(lineage.transitions[1].summary, std::string("OpenEvolve says: Change 1: Replace 2 lines"));
        QCOMPARE(lineage.attempts.size(), std::size_t{2});
        QCOMPARE(lineage.attempts[0].id, std::string("R01a"));
        QCOMPARE(lineage.attempts[0].parent, std::string("K01"));
        QCOMPARE(
            lineage.attempts[0].reason,
            std::string(
                "OpenEvolve says of d: combined_score 0.5, correct or not is not stated there; runtime_ms "
                "2.5."));
        QCOMPARE(lineage.attempts[1].parent, std::string("K01"));
        QVERIFY(lineage.attempts[1].reason.ends_with("; its parent is d."));
        QVERIFY(lineage.trials.empty());
        QCOMPARE(lineage.termination, std::string("unknown"));
        QVERIFY2(
            lineage.origin.starts_with(
                "OpenEvolve, checkpoint_10: 6 programs, of which 5 are here; sha-256 of the sorted lines of "
                "sha256sum over 7 files "),
            lineage.origin.c_str());
        QVERIFY(lineage.origin.ends_with(". Licence: not stated there."));
        QVERIFY(isNoted("There are 2 checkpoints; this is the newest, checkpoint_10."));
        QVERIFY(isNoted("word for word, as migrants to other islands are, and stand as those: 1 (f)"));
        QVERIFY(isNoted("Launch plans that are proposed, because the programs have none; the gate decides: 5 "
                        "(K00, K01, K02, R01a, R01b)."));
        QVERIFY(lineage.reason.ends_with("were proposed here: 5 (K00, K01, K02, R01a, R01b)."));
        const auto k2 = kernel::readCandidate(lineage.directory / "K02.cl");
        QVERIFY2(k2, k2 ? "" : k2.error().message.c_str());
        QCOMPARE(k2->launches.front().kernel, std::string("rows"));

        // Each of them is told.
        const std::vector<ImportedRow> &rows = m_entries.front().rows;
        QCOMPARE(rows.size(), std::size_t{5});
        QCOMPARE(rows[2].id, std::string("K02"));
        QCOMPARE(rows[2].source, std::string("programs/c.json"));
        QCOMPARE(
            rows[2].text,
            std::string(
                "generation 2, island 1, OpenEvolve's combined_score 2.5. OpenEvolve says: Change 1: Replace "
                "2 lines. Its launch plan is proposed; the gate decides."));
        QVERIFY(!rows[3].isState && rows[3].text.starts_with(lineage.attempts[0].reason));

        const auto again = importArchive(root() / "c", m_rows, options());
        QVERIFY(!again && again.error().code == ErrorCode::Conflict);
    }

    void anIslandsFirstProgramIsNoAttempt()
    {
        writeProgram("checkpoint_1", program("a", "", 0, 1.0, 0));
        writeProgram("checkpoint_1", program("b", "", 0, 1.0, 0)); // of another island: the same text
        writeProgram("checkpoint_1", program("c", "b", 1, 2.0, 1));
        const lineage::Lineage lineage = mustImport("checkpoint_1", options());
        QCOMPARE(lineage.states.size(), std::size_t{2});
        QVERIFY(lineage.attempts.empty());
        QVERIFY(isNoted(
            "another root word for word, as each island's first program is, and stand as that one: 1 (b)"));
    }

    void aDryRunWritesNothing()
    {
        writeProgram("checkpoint_1", program("a", "", 0, 1.0, 0));
        ArchiveOptions dry = options();
        dry.dryRun = true;
        dry.name = "mine";
        const auto entries = importArchive(root() / "checkpoint_1", m_rows, dry);
        QVERIFY(entries);
        QCOMPARE(entries->front().name, std::string("rows/pocl-mine"));
        QVERIFY(!fs::exists(m_rows.directory / "lineages"));
    }

    void aStopLeavesNothing()
    {
        writeProgram("checkpoint_1", program("a", "", 0, 1.0, 0));
        std::stop_source stopped;
        stopped.request_stop();
        const auto entries = importArchive(root() / "checkpoint_1", m_rows, options(), stopped.get_token());
        QVERIFY(!entries && entries.error().code == ErrorCode::Cancelled);
        QVERIFY(!fs::exists(m_rows.directory / "lineages"));
    }

    void thePlatform()
    {
        writeProgram("checkpoint_1", program("a", "", 0, 1.0, 0));
        ArchiveOptions none;
        const auto unknown = importArchive(root() / "checkpoint_1", m_rows, none);
        QVERIFY(!unknown && unknown.error().code == ErrorCode::InvalidInput);
        QVERIFY(unknown.error().message.find("--platform") != std::string::npos);
        none.platforms = {"sm90", "pocl", "pocl"};
        QCOMPARE(mustImport("checkpoint_1", none).platform, std::string("pocl"));
        none.platform = "../up";
        const auto bad = importArchive(root() / "checkpoint_1", m_rows, none);
        QVERIFY(!bad && bad.error().code == ErrorCode::InvalidInput);
    }

    void whatIsTornOrHostile()
    {
        const std::string c = "checkpoint_1";
        writeProgram(c, program("a", "", 0, 1.0, 0));
        writeProgram(c, program("b", "a", 1, 3.0, 1));
        json odd = program("odd", "a", 1, 0, 2);
        odd["metrics"]["combined_score"] = "high";
        odd["generation"] = 1e300;
        odd["metadata"] = 7;
        writeProgram(c, odd);
        json slashes = program("s", "../../a/b", 1, 0.5, 3);
        slashes["id"] = "../../../etc/passwd";
        write(c + "/programs/s.json", slashes.dump());
        json zero = program("z", "a", 1, 9.0, 4);
        zero["code"] = std::string("a\0b", 3);
        writeProgram(c, zero);
        json long10 = program("long", "b", 2, 8.0, 5);
        long10["code"] = kernelCode(5) + std::string(10 << 20, ' ');
        writeProgram(c, long10);
        writeProgram(c, program("child", "long", 3, 0.75, 6));
        json again = program("x", "a", 1, 5.0, 7);
        again["id"] = "a";
        write(c + "/programs/x.json", again.dump());
        write(c + "/programs/python.json",
              R"({"id": "nan", "parent_id": "a", "code": "__kernel void k() { /* NaN */ }",)"
              R"( "metrics": {"combined_score": NaN, "b": -Infinity, "name": "NaN"}})");
        json numbered = program("n", "", 0, 0.1, 8);
        numbered["id"] = std::string(500, 'i');
        write(c + "/programs/n.json", numbered.dump());
        write(c + "/programs/torn.json", program("t", "a", 1, 4.0, 9).dump().substr(0, 90));
        write(c + "/programs/array.json", "[1, 2]");
        write(c + "/programs/nothing.json", "{\"id\": \"e\"}");
        write(c + "/programs/huge.json", R"({"id": "h", "code": "x", "generation": 1e999})");
        write(c + "/programs/deep.json", std::string(100'000, '['));
        write(c + "/programs/notes.txt", "no program");
        write("elsewhere.json", program("l", "a", 1, 7.0, 10).dump());
        fs::create_symlink(root() / "elsewhere.json", root() / c / "programs/link.json");
        fs::create_directories(root() / c / "programs/folder");
        write(c + "/metadata.json", R"({"best_program_id": "gone", "islands": "none"})");

        const lineage::Lineage lineage = mustImport(c, options());
        QVERIFY(lineage.notices.empty());
        QCOMPARE(lineage.states.size(), std::size_t{2}); // a, b
        QCOMPARE(lineage.attempts.size(), std::size_t{4});
        QVERIFY(isNoted("The program that the archive calls its best, gone, is not in it"));
        QVERIFY(isNoted("are taken for roots: 1 (../../../etc/passwd)"));
        QVERIFY(isNoted("1 (z), which is no UTF-8 text without zero bytes"));
        QVERIFY(isNoted("1 (long), which is longer than 4 MiB"));
        QVERIFY(isNoted("1 (a), which has the id of another one before it"));
        QVERIFY(isSkipped("programs/torn.json", "not a JSON object"));
        QVERIFY(isSkipped("programs/deep.json", "not a JSON object"));
        QVERIFY(isSkipped("programs/array.json", "it is not an object"));
        QVERIFY(isSkipped("programs/nothing.json", "no text 'code'"));
        QVERIFY(isSkipped("programs/huge.json", "overflow"));
        QVERIFY(isSkipped("programs/n.json", "longer than 200 bytes"));
        QVERIFY(isSkipped("programs/notes.txt", "no program"));
        QVERIFY(isSkipped("programs/link.json", "a link"));
        QVERIFY(isSkipped("programs/folder", "no part"));
        const auto attempt = [&](const std::string &part) {
            return std::find_if(lineage.attempts.begin(), lineage.attempts.end(),
                                [&](const auto &one) { return one.reason.find(part) != std::string::npos; });
        };
        QVERIFY(attempt("says of nan: no score") != lineage.attempts.end());
        QVERIFY(attempt("says of odd: no score") != lineage.attempts.end());
        QCOMPARE(attempt("says of child")->parent, std::string("K01")); // through the one that is too long
        QCOMPARE(attempt("no ancestor of it is a state")->parent, std::string("K00"));
        for (const auto &entry : fs::recursive_directory_iterator(root()))
            QVERIFY(entry.path().filename() != "passwd.cl");
    }

    void ringsAndOwnParents()
    {
        const std::string c = "checkpoint_1";
        writeProgram(c, program("a", "c", 0, 1.0, 0));
        writeProgram(c, program("b", "a", 1, 2.0, 1));
        writeProgram(c, program("c", "b", 2, 3.0, 2));
        writeProgram(c, program("self", "self", 2, 0.5, 3));
        const lineage::Lineage lineage = mustImport(c, options());
        QCOMPARE(lineage.states.size(), std::size_t{3});
        QCOMPARE(lineage.attempts.size(), std::size_t{1});
        QVERIFY(isNoted("their ring is opened before the oldest, which is taken for a root: 2 (a, self)"));
        QVERIFY(isNoted("There is no metadata.json"));
    }

    void twoThousandPrograms()
    {
        const std::string c = "checkpoint_1";
        fs::create_directories(root() / c / "programs");
        for (int i = 0; i < 2000; ++i) {
            const std::string parent = i == 0 ? "" : "p" + std::to_string(i < 400 ? i - 1 : i % 400);
            std::ofstream(root() / c / "programs" / ("p" + std::to_string(i) + ".json"))
                << program("p" + std::to_string(i), parent, i, i < 400 ? 100 + i : 10 + 0.001 * i, i).dump();
        }
        ArchiveOptions some = options();
        const lineage::Lineage first = mustImport(c, some);
        QCOMPARE(first.states.size(), std::size_t{300});
        QCOMPARE(first.states.back().id, std::string("K299"));
        QCOMPARE(first.attempts.size(), std::size_t{200});
        QVERIFY(
            isNoted("The path to the best program has 400 programs; its root and the last 299 are states"));
        QVERIFY(isNoted("Left out, with the lowest scores: 1500 programs, because --most is 500."));
        QVERIFY(first.notices.empty());
        some.most = 5000;
        some.name = "all";
        some.dryRun = true;
        m_entries = *importArchive(root() / c, m_rows, some);
        QVERIFY(isNoted("300 states and 1700 attempts, in OpenCL C."));
        some.dryRun = false;
        some.most = 1;
        some.name = "path";
        QCOMPARE(mustImport(c, some).attempts.size(), std::size_t{0});
    }

    void aLongLineageStaysReadable()
    {
        const std::string c = "checkpoint_1";
        fs::create_directories(root() / c / "programs");
        const std::string longId(190, 'q');
        for (int i = 0; i < 4000; ++i) {
            json one = program(longId + std::to_string(i), i == 0 ? "" : longId + "0", 1, 5000 - i, i);
            for (int metric = 0; metric < 40; ++metric)
                one["metrics"]["a_metric_with_a_long_name_" + std::to_string(metric)] = 1.0 / (1 + i);
            std::ofstream(root() / c / "programs" / (std::to_string(i) + ".json")) << one.dump();
        }
        ArchiveOptions all = options();
        all.most = 5000;
        const lineage::Lineage lineage = mustImport(c, all);
        QVERIFY(lineage.attempts.size() > 1000 && lineage.attempts.size() < 3999);
        QVERIFY(isNoted("lineage.toml would be longer than it may be"));
    }

    void surfaces()
    {
        const std::string c = "checkpoint_1";
        json own = program("own", "", 0, 1.0, 0);
        own["code"] = klineage::tests::rowsKernel("    y[get_global_id(0)] = x[0];\n");
        writeProgram(c, own);
        json cuda = program("cuda", "own", 1, 9.0, 1);
        cuda["code"] = "__global__ void rows(const float *x, float *y, int C) {}\n";
        cuda["language"] = "python";
        writeProgram(c, cuda);
        json triton = program("triton", "cuda", 2, 8.0, 2);
        triton["code"] =
            "# EVOLVE-BLOCK-START\nimport triton\nimport triton.language as tl\n# EVOLVE-BLOCK-END\n";
        writeProgram(c, triton);
        json strings = program("inline", "own", 1, 7.0, 3);
        strings["language"] = "python";
        strings["code"] = "import torch\nsource = '''__global__ void k() {}'''\n";
        writeProgram(c, strings);
        writeProgram(c, program("best", "triton", 3, 2.0, 4));
        write(c + "/metadata.json", R"({"best_program_id": "best"})");
        const lineage::Lineage lineage = mustImport(c, options());
        QCOMPARE(lineage.states.size(), std::size_t{2}); // through programs of other surfaces
        QVERIFY(lineage.attempts.empty());
        QVERIFY(isNoted("1 (cuda), which is written for cuda"));
        QVERIFY(isNoted("1 (triton), which is written for triton"));
        QVERIFY(isNoted("1 (inline), which is for no surface that can be told"));
        QVERIFY(isNoted("1 (K01)")); // a plan was proposed for one of them

        ArchiveOptions named = options();
        named.surface = kernel::Surface::Triton;
        named.platform = "sm90";
        const lineage::Lineage module = mustImport(c, named);
        QCOMPARE(module.states.size(), std::size_t{1});
        QCOMPARE(module.states[0].file, std::string("K00.py"));
        QCOMPARE(*files::readFile(module.directory / "K00.py", 1000), triton["code"].get<std::string>());
        QCOMPARE(module.attempts.size(), std::size_t{1}); // the one that does not tell
        QVERIFY(isNoted(
            "The program that the archive calls its best, best, is left out, because it is written for "
            "opencl"));
        QVERIFY(isNoted("cannot be gated before somebody writes it: 2 (K00, R00a)"));
    }

    void whatIsNoArchive()
    {
        QVERIFY(importArchive(root() / "none", m_rows, options()).error().code == ErrorCode::NotFound);
        fs::create_directories(root() / "empty");
        QVERIFY(reasonOf("empty").find("no checkpoint_N") != std::string::npos);
        write("text", "no database");
        QVERIFY(reasonOf("text").find("neither a folder nor an SQLite file") != std::string::npos);
        fs::create_symlink(root() / "text", root() / "link");
        QVERIFY(reasonOf("link").find("it is a link") != std::string::npos);
        write("checkpoint_2/metadata.json", "{}");
        fs::create_directories(root() / "checkpoint_2/programs");
        QVERIFY(reasonOf("checkpoint_2").find("none of its 0 programs") != std::string::npos);
        json noScore = program("a", "", 0, 1, 0);
        noScore["metrics"] = json::object();
        noScore["code"] = "def f():\n    pass\n";
        writeProgram("checkpoint_2", noScore);
        QVERIFY(reasonOf("checkpoint_2").find("none of its 1 program that can has a score")
                != std::string::npos);
        write("checkpoint_2/metadata.json", R"({"best_program_id": "a"})");
        noScore["language"] = "python";
        writeProgram("checkpoint_2", noScore);
        QVERIFY(reasonOf("checkpoint_2").find("is for no surface that can be told") != std::string::npos);
        writeStep(1, 1, json(), true, 2.0, 1, kernelCode(1));
        fs::create_directories(root() / "runs");
        fs::rename(root() / "ada", root() / "runs/2_1");
        QVERIFY(reasonOf("runs").find("name the one that is meant, such as 2_1") != std::string::npos);
    }

    void stepsOfATree()
    {
        writeStep(0, 0, json(), false, 0, 0, "");
        writeStep(1, 1, 0, true, 1.5, 1, "import triton\n# 1\n");
        writeStep(2, 2, 1, false, 0, 1, "import triton\n# 2\n");
        writeStep(3, 3, 1, true, 2.5, 3, "import triton\n# 3\n");
        writeStep(4, 1, 0, true, 1.5, 3, "import triton\n# 1\n"); // logged again
        writeStep(5, 4, 3, true, 1.25, 3, "import triton\n# 5\n");
        write("ada/step_5_metrics.json", "{\"compiled\": tr");
        write("ada/step_6.py", "import triton\n# 6\n");
        write("ada/step_7_log.json", R"({"node_id": 7})");
        write("ada/step_1_prompt.txt", "prompt");
        write("ada/tree_stats.json", "{}");
        write("ada/LICENSE", "\n# MIT License\n");
        ArchiveOptions sm90 = options();
        sm90.platform = "sm90";
        const lineage::Lineage lineage = mustImport("ada", sm90);
        QCOMPARE(lineage.key(), std::string("rows/sm90-adaexplore"));
        QCOMPARE(lineage.states.size(), std::size_t{2});
        QCOMPARE(lineage.states[1].title, std::string("generation 3, AdaExplore's fast_p 2.5"));
        QCOMPARE(lineage.transitions[0].summary, std::string("AdaExplore says: small_step"));
        QCOMPARE(lineage.attempts.size(), std::size_t{2});
        QVERIFY(lineage.origin.ends_with("Licence: MIT License."));
        QVERIFY(isNoted("1 (0), which has no code"));
        QVERIFY(isNoted("Steps that log an earlier program again: 1 (step 4)."));
        QVERIFY(isSkipped("step_5_metrics.json", "is taken without it"));
        QVERIFY(isSkipped("step_6.py", "step_6_log.json"));
        QVERIFY(isSkipped("step_7.py", "Cannot read"));
        QVERIFY(std::any_of(lineage.attempts.begin(), lineage.attempts.end(), [](const auto &attempt) {
            return attempt.reason.starts_with("AdaExplore says of 2: fast_p 0, not correct; runtime 12.5.");
        }));
    }
};

QTEST_GUILESS_MAIN(TestArchives)
#include "tst_archives.moc"
