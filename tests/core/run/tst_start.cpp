// SPDX-License-Identifier: GPL-3.0-or-later
// From what somebody asks for to the settings of a run, its estimate and its notes.
#include "core/llm/makeprovider.h"
#include "core/run/drive/start.h"
#include "core/run/lift/group.h"
#include "core/run/subject.h"
#include "tests/core/run/materializefixture.h"
#include "tests/paths.h"

#include <QTemporaryDir>
#include <QTest>

using namespace klineage;
using namespace klineage::run;
using namespace klineage::tests;
namespace fs = std::filesystem;

namespace {

StartRequest requestOf(Kind kind, const std::string &subject)
{
    StartRequest request;
    request.kind = kind;
    request.subject = subject;
    request.provider = "exec";
    request.author = {{"command", "true"}, {"base_url", ""}};
    return request;
}

StartRequest paid(StartRequest request)
{
    request.provider = "anthropic";
    request.model = "test-model";
    request.author.clear();
    return request;
}

} // namespace

Q_DECLARE_METATYPE(StartRequest)

class TestStart : public QObject
{
    Q_OBJECT

private slots:
    void init()
    {
        m_folder = std::make_unique<MemoryFolder>();
        fs::copy(fs::path(klineage::test::sourcePath()) / "tests/data/workspace", root(),
                 fs::copy_options::recursive);
        llm::PriceTable prices = testPriceTable();
        prices.date = "2026-01-01";
        prices.source = "this test";
        writeAll(root() / "prices.toml", llm::writePrices(prices));
        // A second workload whose kernels no card cites.
        fs::copy(root() / "workloads/toy", root() / "workloads/other", fs::copy_options::recursive);
        rename("other/workload.toml", "name = \"toy\"", "name = \"other\"");
        rename("other/lineages/pocl/lineage.toml", "workload = \"toy\"", "workload = \"other\"");
        rename("other/lineages/pocl/K00.cl", "// naive", "int y2 = 0;");
        for (const char *file : {"lineage.toml", "trials.jsonl"})
            rename(std::string("other/lineages/pocl/") + file, "00000000000000a1", "00000000000000c1");
        Result<Workspace> opened = openWorkspace(root());
        QVERIFY(opened.has_value());
        m_workspace = std::move(*opened);
        QVERIFY2(m_workspace.findLineage("other/pocl"),
                 m_workspace.problems.empty() ? "" : m_workspace.problems[0].message.c_str());
    }

    void stateNames_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("parts");
        QTest::newRow("state") << "toy/pocl/K01"
                               << "toy pocl K01";
        QTest::newRow("lineage") << "toy/pocl-walked"
                                 << "toy pocl-walked ";
        for (const char *wrong :
             {"", "toy", "toy/", "/pocl", "toy/pocl/", "toy/pocl/K01/x", "toy/../K01", "./pocl"})
            QTest::newRow(qPrintable("not " + QString(wrong))) << wrong << "none";
    }
    void stateNames()
    {
        QFETCH(QString, text);
        QFETCH(QString, parts);
        const std::optional<StateName> name = stateNameOf(text.toStdString());
        QCOMPARE(
            QString::fromStdString(name ? name->workload + ' ' + name->folder + ' ' + name->state : "none"),
            parts);
    }

    void whatIsMeant()
    {
        Settings settings = *startSettings(m_workspace, requestOf(Kind::Materialize, "toy/pocl"));
        QCOMPARE(settings.subject, std::string("toy/pocl/K00")); // the naive state
        QCOMPARE(settings.policy, std::string("klineage"));
        QCOMPARE(settings.workload + ' ' + settings.platform + ' ' + settings.surface,
                 std::string("toy pocl opencl"));
        QVERIFY(settings.author == (std::map<std::string, std::string>{{"command", "true"}}));
        QVERIFY(settings.id.starts_with("toy-klineage-"));

        StartRequest walk = requestOf(Kind::Deoptimize, "toy/pocl/K02");
        walk.options = {{"name", "again"}, {"within_percent", "5"}};
        walk.maxSteps = 4;
        settings = *startSettings(m_workspace, walk);
        QCOMPARE(settings.subject, std::string("toy/pocl/K02"));
        QVERIFY(settings.policy.empty());
        QCOMPARE(settings.maxSteps, 4);
        walk.options["bounds"] = "both"; // as every new walk
        QVERIFY(settings.options == walk.options);

        settings = *startSettings(m_workspace, requestOf(Kind::Lift, "toy/pocl,other/pocl"));
        QVERIFY(settings.workload.empty());
        QVERIFY(liftedLineages(settings.subject) == (std::vector<std::string>{"toy/pocl", "other/pocl"}));
        QVERIFY(startSettings(m_workspace, requestOf(Kind::Lift, "")));

        StartRequest trial = requestOf(Kind::Admit, "stage-rows");
        trial.options["target"] = "other/pocl";
        settings = *startSettings(m_workspace, trial);
        QCOMPARE(settings.workload + ' ' + settings.platform, std::string("other pocl"));
        QCOMPARE(settings.options["target"], std::string("other/pocl"));
    }

    void filesAreBegunWith()
    {
        const std::string file = (root() / "workloads/toy/lineages/pocl/R01a.cl").string();
        StartRequest request = requestOf(Kind::Deoptimize, file);
        request.options["name"] = "file";
        QCOMPARE(messageOf(request), "'" + file + "' is a file: say its workload with workload.");
        request.workload = "toy";
        const Result<Settings> settings = startSettings(m_workspace, request);
        QVERIFY2(settings.has_value(), messageOf(request).c_str());
        QCOMPARE(settings->platform, std::string("pocl")); // of the only lineage
        // As seen from the workspace, so that the record is as good on another machine; what lies elsewhere keeps its place.
        QCOMPARE(settings->subject, std::string("workloads/toy/lineages/pocl/R01a.cl"));
        const QTemporaryDir elsewhere;
        const std::string other = (elsewhere.path() + QStringLiteral("/K.cl")).toStdString();
        std::filesystem::copy_file(file, other);
        request.subject = other;
        QCOMPARE(startSettings(m_workspace, request)->subject, other);

        StartRequest trial = requestOf(Kind::Admit, "stage-rows");
        trial.options["target"] = file;
        trial.fieldPrefix = "--";
        QCOMPARE(
            messageOf(trial),
            std::string("'workloads/toy/lineages/pocl/R01a.cl' is no state of a lineage; for a file, say "
                        "--workload and --platform too."));
        trial.workload = "toy";
        trial.platform = "pocl";
        QCOMPARE(startSettings(m_workspace, trial)->surface, std::string("opencl"));
        QCOMPARE(startSettings(m_workspace, trial)->options.at("target"),
                 std::string("workloads/toy/lineages/pocl/R01a.cl"));
    }

    void refusals_data()
    {
        QTest::addColumn<StartRequest>("request");
        QTest::addColumn<QString>("message");
        const auto row = [](const char *name, const StartRequest &request, const char *message) {
            QTest::newRow(name) << request << message;
        };
        row("nothing", requestOf(Kind::Materialize, ""), "Choose the kernel that the run begins with.");
        row("unknown lineage", requestOf(Kind::Deoptimize, "toy/pcol"),
            "There is no lineage, file or run 'toy/pcol'; did you mean 'toy/pocl'?");
        row("unknown state", requestOf(Kind::Deoptimize, "toy/pocl/K9"),
            "There is no state of toy/pocl 'K9'; there is 'K00', 'K01' or 'K02'.");
        row("lineage that is there", requestOf(Kind::Deoptimize, "toy/pocl"),
            "There is a lineage 'pocl' already that this run did not write; give the new one another name.");
        StartRequest request = requestOf(Kind::Deoptimize, "toy/pocl");
        request.options["name"] = "../x";
        row("bad name", request,
            "'../x' is no name for a lineage; expected 1 to 64 of a-z, 0-9, '_' and '-', not '-' first.");
        row("unknown lineage to lift", requestOf(Kind::Lift, "toy/pocl,toy/sm90"),
            "There is no lineage 'toy/sm90'; there is 'other/pocl' or 'toy/pocl'.");
        row("unknown card", requestOf(Kind::Admit, "stage-row"),
            "There is no card 'stage-row'; did you mean 'stage-rows'?");
        row("no target", requestOf(Kind::Admit, "stage-rows"),
            "Choose the kernel that the card is tried on, the target: a state of a lineage or a candidate "
            "file.");
        request = requestOf(Kind::Admit, "stage-rows");
        request.options["target"] = "toy/pocl/K7";
        row("unknown target state", request,
            "There is no state of toy/pocl 'K7'; there is 'K00', 'K01' or 'K02'.");
        row("unknown run", requestOf(Kind::Materialize, "run:none"), "");
        request = requestOf(Kind::Materialize, "toy/pocl");
        request.author.clear();
        row("no command", request, "The provider 'exec' needs a command.");
        request.provider = "replay";
        request.fieldPrefix = "--";
        row("no transcript", request, "The provider 'replay' needs a --transcript.");
        request = paid(requestOf(Kind::Lift, ""));
        request.model.clear();
        row("no model", request, "The provider 'anthropic' needs a model.");
    }
    void refusals()
    {
        QFETCH(StartRequest, request);
        QFETCH(QString, message);
        QVERIFY(!startSettings(m_workspace, request));
        if (!message.isEmpty())
            QCOMPARE(QString::fromStdString(messageOf(request)), message);
        QVERIFY(!fs::exists(root() / "runs"));
    }

    void estimatesOfEveryKind()
    {
        const auto estimate = [this](const StartRequest &request) {
            const Result<Settings> settings = startSettings(m_workspace, request);
            if (!settings)
                qFatal("%s", settings.error().message.c_str());
            const Result<std::optional<Estimate>> found = startEstimate(m_workspace, *settings);
            if (!found)
                qFatal("%s", found.error().message.c_str());
            return *found;
        };
        StartRequest walk = requestOf(Kind::Deoptimize, "toy/pocl");
        walk.options["name"] = "again";
        walk.maxSteps = 2;
        QVERIFY(!estimate(walk)); // free
        StartRequest local = paid(walk);
        local.model = "a-model-without-a-price";
        local.author = {{"base_url", "http://localhost:11434/v1"}};
        if (llm::hasNetworkProviders())
            QVERIFY(!estimate(local)); // a server on this machine is
        QCOMPARE(estimate(paid(walk))->questions, 6);
        StartRequest lift = requestOf(Kind::Lift, "toy/pocl");
        QCOMPARE(estimate(paid(lift))->questions, 1); // one transition has a card
        lift.options["again"] = "1";
        QCOMPARE(estimate(paid(lift))->questions, 2);
        lift.maxSteps = 1;
        QCOMPARE(estimate(paid(lift))->questions, 1);
        lift.maxSteps = 0;
        lift.capDollars = estimate(paid(lift))->firstDollars * 1.5;
        QCOMPARE(estimate(paid(lift))->questions, 1); // what the cap allows for
        StartRequest trial = requestOf(Kind::Admit, "stage-rows");
        trial.options = {{"target", "other/pocl/K00"}, {"attempts", "2"}};
        QCOMPARE(estimate(paid(trial))->questions, 2);
        const std::optional<Estimate> materialization =
            estimate(paid(requestOf(Kind::Materialize, "toy/pocl")));
        QVERIFY(materialization->questions > 20);
        QVERIFY(materialization->dollars <= 10);
        StartRequest small = paid(requestOf(Kind::Materialize, "toy/pocl"));
        small.policy = "greedy";
        small.options = {{"cards", "yes"}, {"hypotheses", "yes"}, {"prompt_bytes", "1000"}};
        StartRequest large = small;
        large.options["prompt_bytes"] = "2000000";
        QVERIFY(estimate(small)->laterDollars
                < estimate(large)->laterDollars); // what is not shown costs nothing

        StartRequest unknown = paid(walk);
        unknown.model = "nobody-knows";
        const Result<std::optional<Estimate>> none =
            startEstimate(m_workspace, *startSettings(m_workspace, unknown));
        QVERIFY(!none);
        QVERIFY(none.error().message.find("nobody-knows") != std::string::npos);
    }

    /// What every new run says, so that those of earlier versions go on as they began.
    void newRunsSayHowTheyAsk()
    {
        StartRequest request = requestOf(Kind::Materialize, "toy/pocl");
        request.policy = "greedy";
        const Result<Settings> greedy = startSettings(m_workspace, request);
        QVERIFY(greedy);
        QCOMPARE(greedy->options.at("prompt_bytes"), std::string("40000"));
        request.options["prompt_bytes"] = "20000";
        QCOMPARE(startSettings(m_workspace, request)->options.at("prompt_bytes"), std::string("20000"));
        request = requestOf(Kind::Materialize, "toy/pocl");
        request.policy = "kernelpro";
        QCOMPARE(startSettings(m_workspace, request)->options.at("prompt_bytes"), std::string("40000"));
        request.policy = "klineage";
        QCOMPARE(startSettings(m_workspace, request)->options.count("prompt_bytes"), std::size_t{0});
    }

    void notes()
    {
        const auto text = [this](const StartRequest &request) {
            std::string all;
            for (const std::string &note : startNotes(m_workspace, *startSettings(m_workspace, request)))
                all += note + '\n';
            return all;
        };
        StartRequest walk = requestOf(Kind::Deoptimize, "toy/pocl");
        walk.options["name"] = "again";
        QVERIFY(text(walk).find("becomes the lineage toy/pocl-again.") != std::string::npos);
        QVERIFY(text(walk).find("without memory") != std::string::npos);
        QVERIFY(text(paid(walk)).find("without memory") == std::string::npos);
        StartRequest trial = requestOf(Kind::Admit, "stage-rows");
        trial.options["target"] = "toy/pocl/K00";
        QVERIFY(text(trial).find("cannot admit the card. The card cites") != std::string::npos);
        trial.options["target"] = "other/pocl/K00";
        QVERIFY(text(trial).find("is held out") != std::string::npos);
        StartRequest plain = requestOf(Kind::Materialize, "toy/pocl");
        QVERIFY2(text(plain).find("shown no cards: 1 card would fit, but no held-out roundtrip")
                     != std::string::npos,
                 text(plain).c_str());
        plain.options["hypotheses"] = "yes";
        QVERIFY2(text(plain).find("is shown 1 card, 1 of them without proof") != std::string::npos,
                 text(plain).c_str());
        plain.options["held_out"] = "yes"; // the card rests on the run's own workload
        QVERIFY2(text(plain).find("No card of the library fits") != std::string::npos, text(plain).c_str());
        plain.policy = "generated-only";
        QVERIFY(text(plain).empty());
        StartRequest lift = requestOf(Kind::Lift, "toy/pocl");
        QCOMPARE(text(lift), std::string("One group of transitions will be lifted.\n"));
        lift.options["again"] = "1";
        QVERIFY(text(lift).starts_with("2 groups of transitions"));
    }

private:
    [[nodiscard]] fs::path root() const { return m_folder->path() / "workspace"; }

    void rename(const std::string &file, const std::string &what, const std::string &with) const
    {
        std::string text = readAll(root() / "workloads" / file);
        const std::size_t at = text.find(what);
        if (at == std::string::npos)
            qFatal("%s does not hold %s", file.c_str(), what.c_str());
        writeAll(root() / "workloads" / file, text.replace(at, what.size(), with));
    }

    [[nodiscard]] std::string messageOf(const StartRequest &request) const
    {
        const Result<Settings> settings = startSettings(m_workspace, request);
        return settings ? std::string() : settings.error().message;
    }

    std::unique_ptr<MemoryFolder> m_folder;
    Workspace m_workspace;
};

QTEST_GUILESS_MAIN(TestStart)
#include "tst_start.moc"
