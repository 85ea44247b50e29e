// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/random.h"
#include "core/files/jsonreader.h"
#include "core/trial/trial.h"

#include <nlohmann/json.hpp>

#include <QTest>

#include <limits>

using namespace klineage;
using namespace klineage::gate;

namespace {

Trial fullTrial()
{
    Trial trial;
    trial.id = "0123456789abcdef";
    trial.time = "2026-01-02T03:04:05.678Z";
    trial.workload = "gemm";
    trial.candidate = std::string(64, 'a');
    trial.file = "K03.cu";
    trial.parent = std::string(64, 'b');
    trial.surface = kernel::Surface::Cuda;
    trial.tunables = {{"BM", 128}, {"NEG", -3}};
    trial.seeds = {1, std::numeric_limits<std::uint64_t>::max()};
    trial.environment = {"sm90", "NVIDIA H200", {{"driver", "580.159"}, {"a/b~c", "odd \"name\""}}};
    trial.verdict.status = VerdictStatus::Suspect;
    trial.verdict.stage = Stage::Profile;
    trial.verdict.reason = "roofline";
    trial.verdict.message = "Faster than the machine.";
    trial.verdict.evidence = {{"floor_ns", "12.5"}};
    trial.verdict.hint = "Check the timing.";
    trial.verdict.log = "line 1\nline 2\tµ";
    trial.verdict.comparisons = {{"parent", std::string(64, 'b'), {1.5, 1.4, 1.6}, 300, Change::Gain},
                                 {"cublas", "cublas 13.0", {0.7, 0.69, 0.71}, 140, Change::Loss}};
    trial.latencyNs = {200.5, 199.25, 201.125};
    trial.achievedFlops = 1.25e14;
    trial.achievedBytes = 3e12;
    trial.metrics = {{"registers", 168, "", "gemm"}, {"dram_bytes", 1e8, "B", ""}};
    trial.hotspots = {{"gemm", 41, 900, {{"long_scoreboard", 700}, {"selected", 200}}}, {"gemm", 0, 3, {}}};
    trial.samples = {{"candidate", {200.1, 200.9}}, {"parent", {}}};
    trial.trust = Trust::Audited;
    trial.replayOf = "00000000000000aa";
    trial.stages = {0.5, 1.25, 2, 3.75, 0};
    trial.gateVersion = "0.1.0";
    return trial;
}

std::string minimal(const std::string &extra = {})
{
    // moc loses its way in raw strings with an odd number of quotes, hence the replacement.
    std::string text =
        R"({"id":"0123456789abcdef","time":"2026-01-02T03:04:05Z","workload":"w","candidate":"SHA",)"
        R"("surface":"cuda","environment":{"platform":"sm90","device":"d"},)"
        R"("verdict":{"status":"wrong","stage":"correctness","reason":"mismatch"})";
    text.replace(text.find("SHA"), 3, std::string(64, 'a'));
    return text + extra + "}";
}

} // namespace

class TestTrial : public QObject
{
    Q_OBJECT

private slots:
    void roundTripKeepsEverything()
    {
        const Trial trial = fullTrial();
        const std::string line = writeTrial(trial);
        QVERIFY(line.find('\n') == std::string::npos);
        const Result<Trial> read = parseTrial(line, "t.jsonl:1");
        QVERIFY2(read.has_value(), read ? "" : read.error().message.c_str());
        QCOMPARE(writeTrial(*read), line);
        QCOMPARE(read->seeds.back(), std::numeric_limits<std::uint64_t>::max());
        QCOMPARE(read->tunables.at("NEG"), std::int64_t{-3});
        QCOMPARE(read->environment.facts.at("a/b~c"), std::string("odd \"name\""));
        QCOMPARE(read->samples[0].ns, (std::vector<double>{200.1, 200.9}));
        QCOMPARE(read->verdict.log, trial.verdict.log);
        QCOMPARE(read->latencyNs.low, 199.25);
        QCOMPARE(read->verdict.comparisons[1].change, Change::Loss);
        QCOMPARE(read->hotspots.size(), std::size_t{2});
        QCOMPARE(read->hotspots[0].stalls.at("long_scoreboard"), std::int64_t{700});
    }

    void defaultsAreLeftOut()
    {
        const Result<Trial> trial = parseTrial(minimal(), "t");
        QVERIFY(trial.has_value());
        const nlohmann::json json = nlohmann::json::parse(writeTrial(*trial));
        for (const char *key : {"file", "parent", "tunables", "seeds", "latency_ns", "metrics", "samples",
                                "achieved_flops", "stages", "trust", "replay_of"})
            QVERIFY2(!json.contains(key), key);
    }

    void keysAreInTheOrderThatOneReads()
    {
        const auto written = nlohmann::ordered_json::parse(writeTrial(fullTrial()));
        QStringList keys;
        for (const auto &item : written.items())
            keys << QString::fromStdString(item.key());
        QCOMPARE(keys.join(' '),
                 QStringLiteral(
                     "id time workload surface file candidate parent tunables verdict trust environment "
                     "gate_version seeds replay_of latency_ns achieved_flops achieved_bytes metrics hotspots "
                     "stages samples"));
        keys.clear();
        for (const auto &item : written["verdict"].items())
            keys << QString::fromStdString(item.key());
        QCOMPARE(keys.join(' '), QStringLiteral("status stage reason message evidence comparisons hint log"));
    }

    void trustSaysWhatMayRestOnIt()
    {
        Trial trial = *parseTrial(minimal(), "t");
        QVERIFY(trial.trust == Trust::Unsaid);
        QVERIFY(trial.admits());
        for (const Trust trust : {Trust::Isolated, Trust::Audited, Trust::Advisory}) {
            trial.trust = trust;
            QVERIFY(parseTrial(writeTrial(trial), "t")->trust == trust);
            QCOMPARE(trial.admits(), trust != Trust::Advisory);
        }
        trial.trust = Trust::Isolated;
        trial.replayOf = "00000000000000aa";
        QVERIFY(!parseTrial(writeTrial(trial), "t")->admits());
    }

    void stagesThatWereNotReachedAreLeftOut()
    {
        const auto written = nlohmann::json::parse(writeTrial(fullTrial()));
        QVERIFY(written["stages"]
                == nlohmann::json({{"start", 0.5}, {"compile", 1.25}, {"oracle", 2.0}, {"check", 3.75}}));
        QCOMPARE(parseTrial(writeTrial(fullTrial()), "t")->stages.check, 3.75);
    }

    void comparisonsAreFound()
    {
        const Trial trial = fullTrial();
        QCOMPARE(trial.comparison("parent")->otherNs, 300.0);
        QCOMPARE(trial.referenceComparison()->against, std::string("cublas"));
        QVERIFY(trial.comparison("openblas") == nullptr);
    }

    void theHeadlineIsTheFastestReference()
    {
        Trial trial = fullTrial();
        trial.verdict.comparisons.push_back(
            {"cudnn/conv2d_nhwc", "cudnn 9.19", {0.6, 0.5, 0.7}, 120, Change::Loss});
        trial.verdict.comparisons.push_back({"torch", "torch 2.11", {0.65, 0.6, 0.7}, 130, Change::Loss});
        QCOMPARE(trial.referenceComparison()->against, std::string("cudnn/conv2d_nhwc"));
        trial.verdict.comparisons.resize(1); // the parent, although it is the fastest of all
        trial.verdict.comparisons.front().otherNs = 1;
        QVERIFY(trial.referenceComparison() == nullptr);
    }

    void badInput_data()
    {
        QTest::addColumn<QString>("line");
        QTest::addColumn<QString>("message");
        const auto row = [](const char *name, const std::string &line, const std::string &message) {
            QTest::newRow(name) << QString::fromStdString(line) << QString::fromStdString(message);
        };
        row("unknown key", minimal(R"(,"metrcs":[])"),
            "unknown key 'metrcs' in the record; did you mean 'metrics'?");
        row("nested unknown key", minimal(R"(,"latency_ns":{"value":1,"low":1,"high":1,"hi":2})"),
            "unknown key 'hi' in 'latency_ns'");
        row("unknown trust", minimal(R"(,"trust":"certain")"),
            "'trust' is 'certain'; expected 'isolated', 'audited' or 'advisory'");
        row("replay of nothing", minimal(R"(,"replay_of":"K03")"), "'replay_of' is no trial id");
        row("unknown stage", minimal(R"(,"stages":{"compile":1,"link":2})"),
            "unknown key 'link' in 'stages'");
        row("negative stage", minimal(R"(,"stages":{"check":-1})"),
            "'stages.check' is negative; seconds were expected");
        row("stages in a list", minimal(R"(,"stages":[1])"), "'stages' is");
        row("wrong type", minimal(R"(,"file":3)"), "'file' is a number; a string was expected");
        row("infinite", minimal(R"(,"achieved_flops":1e999)"), "number overflow");
        row("NaN", minimal(R"(,"achieved_flops":NaN)"), "not a JSON object");
        row("null number", minimal(R"(,"achieved_flops":null)"),
            "'achieved_flops' is null; a number was expected");
        row("low above high", minimal(R"(,"latency_ns":{"value":1,"low":2,"high":1})"),
            "'latency_ns.low' is above 'high'");
        row("negative seed", minimal(R"(,"seeds":[-1])"), "'seeds' holds something that is no unsigned");
        row("fractional tunable", minimal(R"(,"tunables":{"BM":1.5})"),
            "'tunables.BM' is a number; a whole number was expected");
        row("huge tunable", minimal(R"(,"tunables":{"BM":18446744073709551615})"), "does not fit 64 bits");
        row("bad parent", minimal(R"(,"parent":"xyz")"), "'parent' is no sha-256");
        std::string seeds = "1";
        for (int i = 0; i < 1024; ++i)
            seeds += ",1";
        row("many seeds", minimal(",\"seeds\":[" + seeds + "]"), "'seeds' has more than 1024 elements");
        row("long number", minimal(",\"achieved_flops\":" + std::string(5000, '1')), "number overflow");
        row("deep nesting", minimal(",\"metrics\":" + std::string(100000, '[') + std::string(100000, ']')),
            "'metrics.0' is an array; an object was expected");
        row("array", "[]", "the record is an array; an object was expected");
        row("empty", "", "not a JSON object");
        row("missing", R"({"id":"0123456789abcdef"})", "'time' is missing in the record");
        std::string status = minimal();
        status.replace(status.find("\"wrong\""), 7, "\"wrnog\"");
        row("status", status, "'verdict.status' is 'wrnog'; expected");
        row("status suggestion", status, "did you mean 'wrong'?");
        std::string id = minimal();
        id.replace(id.find("0123456789abcdef"), 16, "0123456789ABCDEF");
        row("id", id, "'id' is no trial id; 16 lower-case hex digits were expected");
        std::string time = minimal();
        time.replace(time.find("2026-01-02T03:04:05Z"), 20, "yesterday, at four..");
        row("time", time, "'time' is no UTC time");
    }

    void badInput()
    {
        QFETCH(QString, line);
        QFETCH(QString, message);
        const Result<Trial> trial = parseTrial(line.toStdString(), "trials.jsonl:7");
        QVERIFY(!trial.has_value());
        const QString found = QString::fromStdString(trial.error().message);
        QVERIFY2(found.startsWith("trials.jsonl:7:"), qPrintable(found));
        QVERIFY2(found.contains(message), qPrintable(found));
        QCOMPARE(trial.error().code, ErrorCode::InvalidInput);
    }

    void messagesPointAtTheColumn()
    {
        const std::string line = minimal(R"(,"metrics":[{"name":"a","value":1},{"name":"b","vlaue":2}])");
        const Result<Trial> trial = parseTrial(line, "f:1");
        QVERIFY(!trial.has_value());
        // 'value' is missing in the second metric: the message points at that object.
        const std::string column = std::to_string(line.find("{\"name\":\"b\"") + 1);
        QCOMPARE(trial.error().message, "f:1:" + column + ": 'value' is missing in 'metrics.1'.");

        const std::string unknown = minimal(R"(,"gate_vrsion":"1")");
        const std::string expected = "f:1:" + std::to_string(unknown.find("\"gate_vrsion\"") + 1) + ":";
        QVERIFY(parseTrial(unknown, "f:1").error().message.starts_with(expected));
    }

    void everyPrefixIsAnErrorAndNoCrash()
    {
        const std::string line = writeTrial(fullTrial());
        for (std::size_t length = 0; length < line.size(); ++length)
            QVERIFY(!parseTrial(std::string_view(line).substr(0, length), "t").has_value());
    }

    void everyFlippedByteIsSurvived()
    {
        const std::string line = writeTrial(fullTrial());
        for (std::size_t i = 0; i < line.size(); ++i) {
            for (const char c : {'\0', '"', '{', ']', '9', '\xff'}) {
                std::string hostile = line;
                hostile[i] = c;
                if (const Result<Trial> trial = parseTrial(hostile, "t"))
                    QVERIFY(parseTrial(writeTrial(*trial), "t").has_value());
            }
        }
    }

    void invalidUtf8InALogIsReplaced()
    {
        Trial trial = fullTrial();
        trial.verdict.log = "bad \xff\xfe byte";
        const Result<Trial> read = parseTrial(writeTrial(trial), "t");
        QVERIFY(read.has_value());
        QVERIFY(read->verdict.log.starts_with("bad "));
    }

    void fromJsonThrowsOnlyJsonExceptions()
    {
        const nlohmann::json json = nlohmann::json::parse(minimal(R"(,"nonsense":1)"));
        Trial trial;
        QVERIFY_THROWS_EXCEPTION(nlohmann::json::exception, json.get_to(trial));
    }

    void namesRoundTrip()
    {
        for (int i = 0; i < 8; ++i) {
            const auto status = static_cast<VerdictStatus>(i);
            QCOMPARE(verdictStatusFromString(toString(status)), std::optional(status));
        }
        QVERIFY(!verdictStatusFromString("perfect"));
        QCOMPARE(stageFromString("correctness"), std::optional(Stage::Correctness));
        QCOMPARE(changeFromString("no_gain"), std::optional(Change::NoGain));
    }

    void idsAreFresh()
    {
        const std::string id = randomId();
        QCOMPARE(id.size(), std::size_t{16});
        QVERIFY(id.find_first_not_of("0123456789abcdef") == std::string::npos);
        QVERIFY(id != randomId());
    }

    void columnsOfOddKeys()
    {
        const std::string line = " { \"a\\\"b\" : [ 1 , {\"x\":\"]}\"} , {\"k\" : 5} ], \"z\":null}";
        QCOMPARE(files::jsonColumn(line, {"a\"b", "2", "k"}, false), static_cast<int>(line.find('5')) + 1);
        QCOMPARE(files::jsonColumn(line, {"a\"b", "2", "k"}, true), static_cast<int>(line.find("\"k\"")) + 1);
        QCOMPARE(files::jsonColumn(line, {"z"}, false), static_cast<int>(line.find("null")) + 1);
        QCOMPARE(files::jsonColumn(line, {"nowhere"}, false), 1);
    }
};

QTEST_GUILESS_MAIN(TestTrial)
#include "tst_trial.moc"
