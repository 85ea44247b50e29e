// SPDX-License-Identifier: GPL-3.0-or-later
//
// Lineages as data sets of FlashInfer Trace: every shipped one by the schema beside this file, and by the importer. That references
// compute what the oracles do stands in tst_pythonfunction.
#include "core/files/atomicfile.h"
#include "core/files/sha256.h"
#include "core/gate/check/inputs.h"
#include "core/interop/problems/draft.h"
#include "core/interop/traceset/datasettrace.h"
#include "core/interop/traceset/exportlineage.h"
#include "core/workspace/workspace.h"
#include "tests/core/interop/tracesetschema.h"
#include "tests/core/trialfixture.h"
#include "tests/paths.h"

#include <QTemporaryDir>
#include <QtTest>
#include <nlohmann/json.hpp>

#include <cstring>

using namespace klineage;
using namespace klineage::interop;
using nlohmann::json;
using klineage::tests::problemOf;
namespace fs = std::filesystem;

namespace {

std::vector<json> linesOf(const std::string &text)
{
    std::vector<json> lines;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text.find('\n', at);
        lines.push_back(json::parse(text.substr(at, end - at)));
        at = end + 1;
    }
    return lines;
}

std::vector<const DatasetFile *> filesBelow(const LineageDataset &dataset, const std::string &folder)
{
    std::vector<const DatasetFile *> files;
    for (const DatasetFile &file : dataset.files) {
        if (file.path.starts_with(folder + '/'))
            files.push_back(&file);
    }
    return files;
}

const Workspace &shipped()
{
    static const Result<Workspace> workspace = openWorkspace(test::sourcePath());
    return *workspace;
}

void addShippedLineages()
{
    QTest::addColumn<QString>("key");
    for (const lineage::Lineage &lineage : shipped().lineages)
        QTest::newRow(lineage.key().c_str()) << QString::fromStdString(lineage.key());
}

/// A shipped workload, for trials that the test makes.
struct Fixture {
    workload::Workload workload = *shipped().findWorkload("gemm");
    DatasetDefinition definition = datasetDefinitionOf(workload).value();
};

} // namespace

class TestTraceSet : public QObject
{
    Q_OBJECT
private slots:
    void everyShippedLineage_data() { addShippedLineages(); }
    void everyShippedLineage();
    void definitionsAreReadAgain_data() { addShippedLineages(); }
    void definitionsAreReadAgain();
    void axes();
    void integersAsFiles();
    void typesThatItHasNot();
    void statuses();
    void whatIsMissingIsLeftOut();
    void cases_data();
    void cases();
    void trialsThatStayBehind_data();
    void trialsThatStayBehind();
    void textsBelowTheLineageAlone();
    void writingTwice();
    void authors();
};

void TestTraceSet::everyShippedLineage()
{
    QFETCH(QString, key);
    const lineage::Lineage &lineage = *shipped().findLineage(key.toStdString());
    const workload::Workload &workload = *shipped().findWorkload(lineage.workload);
    const auto made = datasetOf(lineage, workload);
    QVERIFY2(made, made ? "" : made.error().message.c_str());

    const auto definitions = filesBelow(*made, "definitions");
    QCOMPARE(definitions.size(), std::size_t{1});
    const json definition = json::parse(definitions.front()->text);
    const std::string wrong = problemOf(definition, "definition", "definition");
    QVERIFY2(wrong.empty(), wrong.c_str());
    QCOMPARE(definition["name"].get<std::string>(), lineage.workload);
    QVERIFY(definition["reference"].get<std::string>().find("\ndef run(") != std::string::npos);
    std::set<std::string> variable;
    for (const auto &[name, axis] : definition["axes"].items()) {
        QCOMPARE(axis.contains("value"), axis["type"] == "const");
        if (axis["type"] == "var")
            variable.insert(name);
    }
    std::set<std::string> bound;
    for (const char *kind : {"inputs", "outputs"}) {
        for (const json &tensor : definition[kind]) {
            for (const json &axis : tensor["shape"]) {
                QVERIFY(definition["axes"].contains(axis.get<std::string>()));
                if (std::string_view(kind) == "inputs")
                    bound.insert(axis.get<std::string>());
            }
        }
    }
    QVERIFY(std::includes(bound.begin(), bound.end(), variable.begin(), variable.end()));
    const auto checkWorkload = [&](const json &given) {
        QCOMPARE(given["axes"].size(), variable.size());
        for (const std::string &axis : variable)
            QVERIFY(given["axes"].contains(axis));
    };

    const auto workloads = filesBelow(*made, "workloads");
    QCOMPARE(workloads.size(), std::size_t{1});
    const std::vector<json> shapes = linesOf(workloads.front()->text);
    QCOMPARE(shapes.size(), made->workloads);
    QVERIFY(!shapes.empty());
    std::set<std::string> identifiers;
    for (const json &line : shapes) {
        const std::string problem = problemOf(line, "bare", "workload");
        QVERIFY2(problem.empty(), problem.c_str());
        checkWorkload(line["workload"]);
        QVERIFY(identifiers.insert(line["workload"]["uuid"].get<std::string>()).second);
    }

    std::map<std::string, std::string> solutions; // name -> sha-256 of its source
    for (const DatasetFile *file : filesBelow(*made, "solutions")) {
        const json solution = json::parse(file->text);
        const std::string problem = problemOf(solution, "solution", file->path);
        QVERIFY2(problem.empty(), problem.c_str());
        QCOMPARE(solution["definition"], definition["name"]);
        QCOMPARE(solution["spec"]["language"].get<std::string>(), kernel::toString(lineage.surface));
        const std::string path = solution["sources"][0]["path"].get<std::string>();
        const std::string content = solution["sources"][0]["content"].get<std::string>();
        const auto candidate = kernel::parseCandidate(content, path);
        QVERIFY(candidate);
        QCOMPARE(solution["spec"]["entry_point"].get<std::string>(),
                 path + "::" + candidate->launches.front().kernel);
        QVERIFY(solutions.emplace(solution["name"].get<std::string>(), files::sha256Hex(content)).second);
        QVERIFY(file->path.ends_with("/" + solution["name"].get<std::string>() + ".json"));
    }
    QCOMPARE(solutions.size(), made->solutions);
    const bool isSayable = lineage.surface.device().word != std::string_view("opencl");
    for (const lineage::State &state : lineage.states)
        QCOMPARE(solutions.contains(lineage.workload + '_' + lineage.folder() + '_' + state.id), isSayable);

    std::size_t traces = 0;
    for (const DatasetFile *file : filesBelow(*made, "traces")) {
        for (const json &line : linesOf(file->text)) {
            ++traces;
            const std::string problem = problemOf(line, "trace", file->path);
            QVERIFY2(problem.empty(), problem.c_str());
            checkWorkload(line["workload"]);
            const json &evaluation = line["evaluation"];
            const bool isPassed = evaluation["status"] == "PASSED";
            const bool isJudged = isPassed || evaluation["status"] == "INCORRECT_NUMERICAL";
            QCOMPARE(evaluation.contains("performance"), isPassed);
            QCOMPARE(evaluation.contains("correctness"), isJudged);
            const auto solution = solutions.find(line["solution"].get<std::string>());
            QVERIFY(solution != solutions.end());
            if (!isJudged)
                continue;
            const gate::Trial *trial =
                lineage.findTrial(evaluation["correctness"]["extra"]["trial"].get<std::string>());
            QVERIFY(trial);
            QCOMPARE(trial->candidate, solution->second);
            QCOMPARE(evaluation["environment"]["hardware"].get<std::string>(), trial->environment.device);
            if (!isPassed)
                continue;
            const json &performance = evaluation["performance"];
            QCOMPARE(performance["latency_ms"].get<double>(), trial->latencyNs.value / 1e6);
            const gate::Comparison *reference = trial->referenceComparison();
            QCOMPARE(performance.contains("speedup_factor"), reference != nullptr);
            if (reference) {
                QCOMPARE(performance["speedup_factor"].get<double>(), reference->speedup.value);
                QCOMPARE(evaluation["correctness"]["extra"]["reference"]["name"].get<std::string>(),
                         reference->against);
            }
        }
    }
    QCOMPARE(traces, made->traces);
    // What is left out is counted: nothing is lost in silence.
    std::size_t leftOut = 0;
    for (const std::string &lost : made->lost) {
        if (lost.find(" left out: ") != std::string::npos)
            leftOut += static_cast<std::size_t>(std::stoul(lost));
    }
    QCOMPARE(traces + leftOut, lineage.trials.size());
    if (isSayable)
        QVERIFY(traces > 0);
}

void TestTraceSet::definitionsAreReadAgain()
{
    QFETCH(QString, key);
    const lineage::Lineage &lineage = *shipped().findLineage(key.toStdString());
    const workload::Workload &workload = *shipped().findWorkload(lineage.workload);
    const auto made = datasetOf(lineage, workload);
    QVERIFY(made);
    QVERIFY(looksLikeDefinition(made->files.front().text));
    const auto definition = parseDefinition(made->files.front().text, "exported");
    QVERIFY2(definition, definition ? "" : definition.error().message.c_str());
    QVERIFY(definition->unread.empty());
    std::vector<Binding> bindings;
    for (const json &line : linesOf(filesBelow(*made, "workloads").front()->text)) {
        const auto binding = parseBinding(line.dump(), "exported");
        QVERIFY2(binding, binding ? "" : binding.error().message.c_str());
        bindings.push_back(*binding);
    }
    const auto draft = draftOf(*definition, bindings, {});
    const bool hasIntegers =
        std::any_of(workload.tensors.begin(), workload.tensors.end(), [](const workload::Tensor &tensor) {
            return tensor.role == workload::Role::Input && !kernel::isFloat(tensor.dtype);
        });
    if (hasIntegers) { // which the format does not say, so that the importer refuses to guess them
        QVERIFY(!draft);
        QVERIFY2(draft.error().message.find("is of integers") != std::string::npos,
                 draft.error().message.c_str());
        return;
    }
    QVERIFY2(draft, draft ? "" : draft.error().message.c_str());
    QCOMPARE(draft->workload.name, workload.name);
    QCOMPARE(draft->workload.tensors.size(), workload.tensors.size());
    const auto shapesOf = [](const workload::Workload &of, const workload::Case &c) {
        std::map<std::string, std::vector<std::int64_t>> shapes;
        for (const workload::Tensor &tensor : of.tensors)
            shapes[tensor.name] = of.shapeOf(tensor, c).value();
        return shapes;
    };
    for (const workload::Tensor &tensor : workload.tensors) {
        const workload::Tensor *again = draft->workload.findTensor(tensor.name);
        QVERIFY(again);
        QCOMPARE(again->dtype, tensor.dtype == kernel::DType::TF32 ? kernel::DType::F32 : tensor.dtype);
        QCOMPARE(again->role, tensor.role);
    }
    const auto timed = shapesOf(draft->workload, draft->workload.cases.front());
    QVERIFY(std::any_of(workload.cases.begin(), workload.cases.end(), [&](const workload::Case &c) {
        return c.drawn.empty() && shapesOf(workload, c) == timed;
    }));
}

void TestTraceSet::axes()
{
    const DatasetDefinition made = datasetDefinitionOf(*shipped().findWorkload("conv2d")).value();
    const auto axis = [](const DatasetDefinition &of, const std::string &name) -> const DatasetAxis * {
        const auto found = std::find_if(of.axes.begin(), of.axes.end(),
                                        [&](const DatasetAxis &candidate) { return candidate.name == name; });
        return found == of.axes.end() ? nullptr : &*found;
    };
    QVERIFY(axis(made, "weight_dim0") && !axis(made, "weight_dim0")->constant);
    QCOMPARE(made.json["constraints"].dump(), std::string(R"(["weight_dim0 == 9 * C"])"));
    QCOMPARE(made.json["inputs"]["weight"]["shape"].dump(), std::string(R"(["weight_dim0","F"])"));

    const DatasetDefinition attention = datasetDefinitionOf(*shipped().findWorkload("fmha")).value();
    QCOMPARE(axis(attention, "D")->constant.value_or(0), std::int64_t{128});
    QVERIFY(!axis(attention, "B")); // no tensor has it
    QCOMPARE(attention.json["inputs"]["cu_seqlens_k"]["shape"],
             attention.json["inputs"]["cu_seqlens_q"]["shape"]);
    QVERIFY(!attention.json.contains("constraints"));

    const workload::Workload &topk = *shipped().findWorkload("topk");
    const DatasetDefinition selection = datasetDefinitionOf(topk).value();
    QCOMPARE(axis(selection, "K")->constant.value_or(0), std::int64_t{512}); // no input has it
    QVERIFY(datasetWorkloadOf(selection, topk, topk.cases.front()));
    QVERIFY(!datasetWorkloadOf(selection, topk, *topk.findCase("odd")));
}

void TestTraceSet::integersAsFiles()
{
    const workload::Workload &workload = *shipped().findWorkload("fmha");
    const DatasetDefinition definition = datasetDefinitionOf(workload).value();
    const workload::Case &c = *workload.findCase("shortest");
    const auto line = datasetWorkloadOf(definition, workload, c);
    QVERIFY2(line, line ? "" : line.error().message.c_str());
    QCOMPARE(line->files.size(), std::size_t{1});
    QCOMPARE(line->json["inputs"]["q"].dump(), std::string(R"({"type":"random"})"));
    const json source = line->json["inputs"]["cu_seqlens_k"];
    QCOMPARE(source["path"].get<std::string>(), line->files.front().path);

    const std::string &bytes = line->files.front().text;
    const auto length = static_cast<std::size_t>(static_cast<unsigned char>(bytes[0]));
    QCOMPARE(bytes.substr(1, 7), std::string(7, '\0'));
    const json header = json::parse(bytes.substr(8, length));
    const auto tensors = gate::generateCase(workload, c, 3);
    QVERIFY(tensors);
    for (const gate::HostTensor &tensor : *tensors) {
        if (tensor.dtype != kernel::DType::I32)
            continue;
        const json &entry = header[tensor.name];
        QCOMPARE(entry["dtype"].get<std::string>(), std::string("I32"));
        QCOMPARE(entry["shape"].dump(), json(tensor.shape).dump());
        const auto begin = entry["data_offsets"][0].get<std::size_t>();
        const auto end = entry["data_offsets"][1].get<std::size_t>();
        QCOMPARE(end - begin, tensor.bytes.size());
        QCOMPARE(std::memcmp(bytes.data() + 8 + length + begin, tensor.bytes.data(), end - begin), 0);
    }

    const auto ragged = datasetWorkloadOf(definition, workload, *workload.findCase("ragged"));
    QVERIFY(!ragged); // drawn anew for each trial
    QVERIFY2(ragged.error().message.find("'cu_seqlens_q'") != std::string::npos,
             ragged.error().message.c_str());
}

void TestTraceSet::typesThatItHasNot()
{
    for (const kernel::DType dtype : {kernel::DType::F64, kernel::DType::U8, kernel::DType::U32}) {
        workload::Workload workload = *shipped().findWorkload("silu");
        workload.tensors.front().dtype = dtype;
        const auto made = datasetDefinitionOf(workload);
        QVERIFY(!made);
        QVERIFY2(made.error().message.find(kernel::toString(dtype)) != std::string::npos,
                 made.error().message.c_str());
    }
    workload::Workload workload = *shipped().findWorkload("silu");
    workload.oracle = "nobody_knows";
    QVERIFY(datasetDefinitionOf(workload).error().message.find("'nobody_knows'") != std::string::npos);
}

void TestTraceSet::statuses()
{
    using gate::VerdictStatus;
    const std::map<VerdictStatus, std::string> words = {{VerdictStatus::Correct, "PASSED"},
                                                        {VerdictStatus::CompileError, "COMPILE_ERROR"},
                                                        {VerdictStatus::Wrong, "INCORRECT_NUMERICAL"},
                                                        {VerdictStatus::Unsafe, "RUNTIME_ERROR"},
                                                        {VerdictStatus::Crash, "RUNTIME_ERROR"},
                                                        {VerdictStatus::Timeout, "TIMEOUT"}};
    for (const auto &[status, word] : words)
        QCOMPARE(std::string(datasetStatus(status)), word);
    QVERIFY(!datasetStatus(VerdictStatus::Suspect));
    QVERIFY(!datasetStatus(VerdictStatus::Unavailable));
}

void TestTraceSet::whatIsMissingIsLeftOut()
{
    const Fixture fixture;
    gate::Trial trial = tests::makeTrial("00112233aabbccdd", "text", "parent");
    const auto trace = [&] {
        return json(datasetTraceOf(fixture.definition, fixture.workload, "s", trial).value().json);
    };
    json made = trace();
    QCOMPARE(problemOf(made, "trace", "trace"), std::string());
    QCOMPARE(made["evaluation"]["performance"].dump(), std::string(R"({"latency_ms":0.001})"));
    QVERIFY(!made["evaluation"]["correctness"].contains("max_absolute_error"));
    QCOMPARE(made["evaluation"]["correctness"]["extra"]["parent"]["speedup_factor"].get<double>(), 2.0);
    QVERIFY(!made["evaluation"]["correctness"]["extra"].contains("reference"));
    QCOMPARE(made["evaluation"]["environment"]["libs"].dump(), std::string("{}"));

    trial.verdict.comparisons.push_back({"slow", "slow 1", {4, 3.9, 4.1}, 4000, gate::Change::Gain});
    trial.verdict.comparisons.push_back({"fast", "fast 2", {0.5, 0.4, 0.6}, 500, gate::Change::Loss});
    made = trace();
    QCOMPARE(made["evaluation"]["performance"]["speedup_factor"].get<double>(), 0.5);
    QCOMPARE(made["evaluation"]["performance"]["reference_latency_ms"].get<double>(), 0.0005);
    QCOMPARE(made["evaluation"]["correctness"]["extra"]["reference"]["version"].get<std::string>(),
             std::string("fast 2"));
    QCOMPARE(made["evaluation"]["environment"]["libs"].size(), std::size_t{2});

    trial.verdict.status = gate::VerdictStatus::CompileError;
    trial.verdict.log = "kernel.cu(3): error";
    trial.latencyNs = {};
    made = trace();
    QCOMPARE(problemOf(made, "trace", "trace"), std::string());
    QVERIFY(!made["evaluation"].contains("correctness") && !made["evaluation"].contains("performance"));
    QVERIFY(made["evaluation"]["log"].get<std::string>().find("00112233aabbccdd") != std::string::npos);
    QVERIFY(made["evaluation"]["log"].get<std::string>().ends_with("kernel.cu(3): error\n"));
}

void TestTraceSet::cases_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<int>("rows"); // M; 0: none of the workload's
    QTest::newRow("fixed") << "odd" << 264;
    QTest::newRow("drawn") << "hidden (K = 360, M = 129, N = 352)" << 129;
    QTest::newRow("not drawn yet") << "hidden" << 0;
    QTest::newRow("half drawn") << "hidden (K = 360, M = 129)" << 0;
    QTest::newRow("out of range") << "hidden (K = 360, M = 99999999, N = 352)" << 0;
    for (const char *text : {"", "nothing", "odd (M = 3)", "hidden (", "hidden ()", "hidden (K = )",
                             "hidden (K = 360, M = 129, N = 352", "hidden (K = 3x, M = 129, N = 352)",
                             "hidden (K, M = 129, N = 352)", "hidden (K = 360, K = 360, M = 129, N = 352)"})
        QTest::newRow(text) << text << 0;
}

void TestTraceSet::cases()
{
    QFETCH(QString, text);
    QFETCH(int, rows);
    const auto found = caseCalled(*shipped().findWorkload("gemm"), text.toStdString());
    QCOMPARE(found.has_value(), rows > 0);
    if (found)
        QCOMPARE(found->axes.at("M"), std::int64_t{rows});
}

void TestTraceSet::trialsThatStayBehind_data()
{
    QTest::addColumn<int>("status");
    QTest::addColumn<QString>("failedIn");
    QTest::addColumn<QString>("why");
    using gate::VerdictStatus;
    const auto row = [](const char *name, VerdictStatus status, const char *failedIn, const char *why) {
        QTest::newRow(name) << static_cast<int>(status) << failedIn << why;
    };
    row("suspect", VerdictStatus::Suspect, "", "'suspect'");
    row("unavailable", VerdictStatus::Unavailable, "", "'unavailable'");
    row("not timed", VerdictStatus::Correct, "", "not timed");
    row("nobody says where", VerdictStatus::Wrong, "", "in which case");
    row("a case that was", VerdictStatus::Wrong, "former", "'former'");
}

void TestTraceSet::trialsThatStayBehind()
{
    QFETCH(int, status);
    QFETCH(QString, failedIn);
    QFETCH(QString, why);
    const Fixture fixture;
    gate::Trial trial = tests::makeTrial("00112233aabbccdd", "text");
    trial.verdict.status = static_cast<gate::VerdictStatus>(status);
    trial.latencyNs = {};
    if (!failedIn.isEmpty())
        trial.verdict.evidence.push_back({"case", failedIn.toStdString()});
    const auto trace = datasetTraceOf(fixture.definition, fixture.workload, "s", trial);
    QVERIFY(!trace);
    QVERIFY2(trace.error().message.find(why.toStdString()) != std::string::npos,
             trace.error().message.c_str());
}

void TestTraceSet::textsBelowTheLineageAlone()
{
    const QTemporaryDir folder;
    const fs::path root = folder.path().toStdString();
    fs::create_directories(root / "w/lineages/sm90");
    const std::string text =
        "/*klineage\nsurface = \"cuda\"\n\n[[tunable]]\nname = \"BM\"\ndefault = 64\nvalues = [64, 128]\n\n"
        "[[launch]]\nkernel = \"gemm\"\ngrid = [1]\nblock = [1]\nargs = [\"y\"]\n*/\n"
        "extern \"C\" __global__ void gemm(float *y) {}\n";
    QVERIFY(files::writeFileAtomic(root / "w/outside.cu", text));
    lineage::Lineage lineage;
    lineage.workload = "gemm";
    lineage.platform = "sm90";
    lineage.surface = kernel::Surface::Cuda;
    lineage.directory = root / "w/lineages/sm90";
    gate::Trial trial = tests::makeTrial("00112233aabbccdd", text);
    trial.surface = kernel::Surface::Cuda;
    trial.tunables = {{"BM", 64}};
    for (const std::string &file : {std::string("../../outside.cu"), (root / "w/outside.cu").string()}) {
        trial.file = file;
        lineage.trials = {trial};
        const auto made = datasetOf(lineage, *shipped().findWorkload("gemm"));
        QVERIFY(made);
        QCOMPARE(made->solutions + made->traces, std::size_t{0});
        QVERIFY(made->lost.back().find("the text that they measured is not there") != std::string::npos);
    }
    QVERIFY(files::writeFileAtomic(lineage.directory / "inside.cu", text));
    lineage.trials.front().file = "inside.cu";
    lineage.trials.push_back(lineage.trials.front());
    lineage.trials.back().tunables["BM"] = 128;
    const auto made = datasetOf(lineage, *shipped().findWorkload("gemm"), {"ada"});
    QVERIFY(made);
    QCOMPARE(made->solutions, std::size_t{1});
    QCOMPARE(made->traces, std::size_t{1}); // the other one's tunables are not the text's
    QVERIFY(made->lost.back().find("tunables") != std::string::npos);
    const auto solutions = filesBelow(*made, "solutions/ada/matmul_nt/gemm");
    QCOMPARE(solutions.size(), std::size_t{1});
    QCOMPARE(json::parse(solutions.front()->text)["name"].get<std::string>(),
             "gemm_sm90_" + files::sha256Hex(text).substr(0, 12));
}

void TestTraceSet::writingTwice()
{
    const QTemporaryDir folder;
    const fs::path root = fs::path(folder.path().toStdString()) / "set";
    const lineage::Lineage &lineage = *shipped().findLineage("softmax/sm90-triton");
    const workload::Workload &workload = *shipped().findWorkload("softmax");
    const auto made = datasetOf(lineage, workload);
    QVERIFY(made && made->solutions > 0);
    for (int i = 0; i < 2; ++i) {
        const Status written = writeDataset(*made, root);
        QVERIFY2(written, written ? "" : written.error().message.c_str());
    }
    std::size_t count = 0;
    for (const auto &entry : fs::recursive_directory_iterator(root))
        count += entry.is_regular_file() ? 1U : 0U;
    QCOMPARE(count, made->files.size());
    QCOMPARE(files::readFile(root / made->files.back().path, std::size_t{64} << 20).value(),
             made->files.back().text);

    const fs::path definition = root / made->files.front().path;
    QVERIFY(files::writeFileAtomic(definition, "{}"));
    fs::remove_all(root / "traces");
    const Status refused = writeDataset(*made, root);
    QVERIFY(!refused);
    QCOMPARE(refused.error().code, ErrorCode::Conflict);
    QVERIFY(!fs::exists(root / "traces"));
}

void TestTraceSet::authors()
{
    for (const char *good : {"klineage", "Ada.L-2_x"})
        QVERIFY(isDatasetAuthor(good));
    for (const char *bad : {"", ".", "..", "a/b", "a b", "\xc3\xa4"})
        QVERIFY(!isDatasetAuthor(bad));
    QVERIFY(!isDatasetAuthor(std::string(65, 'a')));
}

QTEST_GUILESS_MAIN(TestTraceSet)
#include "tst_traceset.moc"
