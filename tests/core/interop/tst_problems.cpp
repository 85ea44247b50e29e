// SPDX-License-Identifier: GPL-3.0-or-later
//
// Problems of other benchmarks: what is read, what is refused and in which words. The definitions are this test's own, after the public
// schema; their references are plain Python, so that no package is needed.
#include "core/files/atomicfile.h"
#include "core/interop/problems/importproblems.h"
#include "core/interop/problems/kernelbench.h"

#include <QtTest>
#include <nlohmann/json.hpp>

using namespace klineage;
using namespace klineage::interop;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

constexpr const char *reference = R"(def run(rows, weight, eps):
    out = []
    for row in rows:
        scale = (sum(float(v) * float(v) for v in row) / len(row) + eps) ** -0.5
        out.append([float(v) * scale * float(w) for v, w in zip(row, weight)])
    return out
)";

json definition()
{
    return {{"name", "RowNorm d24"},
            {"op_type", "rmsnorm"},
            {"tags", {"status:verified"}},
            {"hf_id", "none/none"},
            {"description", "Root mean square of each row."},
            {"axes", {{"rows", {{"type", "var"}}}, {"hidden", {{"type", "const"}, {"value", 24}}}}},
            {"inputs",
             {{"rows", {{"shape", {"rows", "hidden"}}, {"dtype", "float32"}}},
              {"weight", {{"shape", {"hidden"}}, {"dtype", "float16"}}},
              {"eps", {{"shape", nullptr}, {"dtype", "float32"}}}}},
            {"outputs", {{"out", {{"shape", {"rows", "hidden"}}, {"dtype", "float32"}}}}},
            {"reference", reference}};
}

/// Keys in the order in which they stand above, which nlohmann's sorted objects would lose.
std::string ordered(const json &value)
{
    nlohmann::ordered_json root = nlohmann::ordered_json::parse(value.dump());
    if (root.contains("inputs") && root["inputs"].is_object() && root["inputs"].contains("rows")
        && root["inputs"].contains("eps")) {
        nlohmann::ordered_json inputs;
        for (const char *name : {"rows", "weight", "eps"}) {
            if (root["inputs"].contains(name))
                inputs[name] = root["inputs"][name];
        }
        root["inputs"] = inputs;
    }
    return root.dump(1);
}

std::string binding(int rows, double eps = 1e-5, const char *type = "random")
{
    return json{{"uuid", "b" + std::to_string(rows)},
                {"axes", {{"rows", rows}}},
                {"inputs",
                 {{"rows", {{"type", type}}},
                  {"weight", {{"type", "random"}}},
                  {"eps", {{"type", "scalar"}, {"value", eps}}}}}}
        .dump();
}

std::vector<Binding> bindings(std::initializer_list<std::string> lines)
{
    std::vector<Binding> result;
    for (const std::string &line : lines)
        result.push_back(parseBinding(line, "test").value());
    return result;
}

void write(const fs::path &path, const std::string &text)
{
    fs::create_directories(path.parent_path());
    QVERIFY(files::writeFileAtomic(path, text));
}

bool hasNote(const std::vector<std::string> &notes, const std::string &part)
{
    return std::any_of(notes.begin(), notes.end(),
                       [&](const std::string &note) { return note.find(part) != std::string::npos; });
}

const ImportEntry *entryOf(const std::vector<ImportEntry> &entries, const std::string &source)
{
    const auto found = std::find_if(entries.begin(), entries.end(),
                                    [&](const ImportEntry &entry) { return entry.source == source; });
    return found == entries.end() ? nullptr : &*found;
}

} // namespace

class TestProblems : public QObject
{
    Q_OBJECT
private slots:
    void aDefinitionBecomesAWorkload();
    void whatCannotBeSaid_data();
    void whatCannotBeSaid();
    void hostileDefinitions_data();
    void hostileDefinitions();
    void hostileBindings_data();
    void hostileBindings();
    void valuesMayBeGiven();
    void expressionAxes();
    void aFolderIsImported();
    void whatTheReferenceDoesWrong_data();
    void whatTheReferenceDoesWrong();
    void descriptionsOfKernelBench();
    void aProblemOfKernelBench();
    void arraysAreThoseThatAreImported();
    void slugs();
};

void TestProblems::aDefinitionBecomesAWorkload()
{
    const auto read = parseDefinition(ordered(definition()), "rownorm.json");
    QVERIFY2(read, read ? "" : read.error().message.c_str());
    QCOMPARE(read->unread, std::vector<std::string>{"hf_id"});
    const auto draft = draftOf(*read,
                               bindings({binding(3), binding(64), binding(16), binding(128), binding(7, 0.5),
                                         binding(9, 1e-5, "safetensors")}),
                               {});
    QVERIFY2(draft, draft ? "" : draft.error().message.c_str());
    const workload::Workload &w = draft->workload;
    QCOMPARE(w.name, std::string("rownorm-d24"));
    QCOMPARE(w.axes, (std::vector<std::string>{"hidden", "rows_"})); // the input has the name "rows"
    QVERIFY(hasNote(draft->notes, "'rows_'"));
    QVERIFY(hasNote(draft->notes, "'hf_id' is not taken over"));
    QVERIFY(hasNote(draft->notes, "1 workload is left out: the input 'rows' is 'safetensors'"));
    QVERIFY(hasNote(draft->notes, "1 shapes are left out: their numbers differ"));
    QVERIFY(hasNote(draft->notes, "3 of 4 shapes are cases"));
    QCOMPARE(w.tensors.size(), std::size_t{3});
    QCOMPARE(w.findTensor("weight")->dtype, kernel::DType::F16);
    QCOMPARE(w.cases.front().axes.at("rows_"), std::int64_t{128});
    QCOMPARE(w.findCase("shape-3")->axes.at("rows_"), std::int64_t{3});
    QCOMPARE(w.findCase("hidden")->drawn.at("rows_").high, std::int64_t{128});
    QVERIFY(w.findCase("spread"));
    QCOMPARE(w.python->arguments, (std::vector<std::string>{"rows", "weight", "1e-05"}));
    QCOMPARE(w.bytes.evaluateReal(w.bindings(w.cases.front())).value(),
             4.0 * 128 * 24 + 2 * 24 + 4 * 128 * 24);
}

void TestProblems::whatCannotBeSaid_data()
{
    QTest::addColumn<QString>("pointer");
    QTest::addColumn<QString>("value");
    QTest::addColumn<QString>("message");
    QTest::newRow("bool") << "/inputs/weight/dtype"
                          << "\"bool\""
                          << "of the type 'bool'";
    QTest::newRow("four bits") << "/inputs/weight/dtype"
                               << "\"float4_e2m1\""
                               << "'float4_e2m1', which workloads do not have";
    QTest::newRow("integers") << "/inputs/weight/dtype"
                              << "\"int32\""
                              << "does not say which ones";
    QTest::newRow("no dimensions") << "/inputs/weight/shape"
                                   << "[]"
                                   << "has no dimensions";
    QTest::newRow("a number as output") << "/outputs/out/shape"
                                        << "null"
                                        << "has no dimensions";
    QTest::newRow("nine dimensions") << "/outputs/out/shape"
                                     << R"(["rows","rows","rows","rows","rows","rows","rows","rows","rows"])"
                                     << "more than 8 dimensions";
    QTest::newRow("unknown axis") << "/outputs/out/shape"
                                  << R"(["cols"])"
                                  << "'cols' of the output 'out' is not defined";
    QTest::newRow("no reference") << "/reference"
                                  << "\"\""
                                  << "no reference";
    QTest::newRow("a cycle") << "/axes"
                             << R"({"rows":{"type":"var"},"hidden":{"type":"expr","expression":"other + 1"},)"
                                R"("other":{"type":"expr","expression":"hidden - 1"}})"
                             << "is defined by itself";
    QTest::newRow("a power") << "/axes"
                             << R"({"rows":{"type":"var"},"hidden":{"type":"expr","expression":"2 ** 9"}})"
                             << "has a power";
    QTest::newRow("no expression")
        << "/axes"
        << R"({"rows":{"type":"var"},"hidden":{"type":"expr","expression":"__import__['os']"}})"
        << "cannot be read";
    QTest::newRow("doubling")
        << "/axes"
        << R"({"rows":{"type":"var"},"a":{"type":"expr","expression":"rows+rows+rows+rows+rows+rows+rows+rows"},)"
           R"("b":{"type":"expr","expression":"a+a+a+a+a+a+a+a"},"c":{"type":"expr","expression":"b+b+b+b+b+b"},)"
           R"("hidden":{"type":"expr","expression":"c+c+c+c+c+c+c"}})"
        << "too long an expression";
    QTest::newRow("too large") << "/axes/hidden/value"
                               << "2147483647"
                               << "64 GiB";
    QTest::newRow("custom inputs") << "/inputs/weight/shape"
                                   << R"(["hidden"])"
                                   << "is 'custom', and contents are drawn anew";
}

void TestProblems::whatCannotBeSaid()
{
    QFETCH(QString, pointer);
    QFETCH(QString, value);
    QFETCH(QString, message);
    json changed = definition();
    changed[json::json_pointer(pointer.toStdString())] = json::parse(value.toStdString());
    const auto read = parseDefinition(ordered(changed), "test.json");
    QVERIFY2(read, read ? "" : read.error().message.c_str());
    const std::string type = QString(QTest::currentDataTag()) == "custom inputs" ? "custom" : "random";
    const auto draft = draftOf(*read, bindings({binding(1'000'000, 1e-5, type.c_str())}), {});
    QVERIFY(!draft);
    QVERIFY2(QString::fromStdString(draft.error().message).contains(message), draft.error().message.c_str());
}

void TestProblems::hostileDefinitions_data()
{
    QTest::addColumn<QString>("pointer");
    QTest::addColumn<QString>("value");
    QTest::addColumn<QString>("message");
    QTest::newRow("huge axis") << "/axes/hidden/value"
                               << "1e30"
                               << "is no whole number from 1";
    QTest::newRow("huge whole axis") << "/axes/hidden/value"
                                     << "18446744073709551615"
                                     << "is no whole number from 1";
    QTest::newRow("no axis") << "/axes/hidden/value"
                             << "0"
                             << "is no whole number from 1";
    QTest::newRow("negative") << "/axes/hidden/value"
                              << "-5"
                              << "is no whole number from 1";
    QTest::newRow("text as value") << "/axes/hidden/value"
                                   << "\"24\""
                                   << "is no whole number from 1";
    QTest::newRow("kind of axis") << "/axes/rows/type"
                                  << "\"ragged\""
                                  << "expected const, var or expr";
    QTest::newRow("axis without type") << "/axes/rows"
                                       << "{}"
                                       << "has no 'type'";
    QTest::newRow("axes as list") << "/axes"
                                  << "[1, 2]"
                                  << "'axes' is no object";
    QTest::newRow("shape as text") << "/outputs/out/shape"
                                   << "\"rows\""
                                   << "neither a list of axes nor null";
    QTest::newRow("numbers as axes") << "/outputs/out/shape"
                                     << "[3, 4]"
                                     << "an axis of 'out' is no text";
    QTest::newRow("no dtype") << "/outputs/out"
                              << R"({"shape": ["rows"]})"
                              << "has no 'dtype'";
    QTest::newRow("reference as list") << "/reference"
                                       << "[]"
                                       << "is no text";
    QTest::newRow("constraints") << "/constraints"
                                 << "\"a == b\""
                                 << "'constraints' is no list";
    QTest::newRow("name as number") << "/name"
                                    << "5"
                                    << "'name' is no text";
    QTest::newRow("ten megabytes") << "/description" << '"' + QString(10'000'000, 'x') + '"'
                                   << "longer than 4 MiB";
    QTest::newRow("a long name") << "/name" << '"' + QString(1000, 'x') + '"' << "longer than 200 bytes";
    QTest::newRow("a byte of zero") << "/reference"
                                    << "\"a\\u0000b\""
                                    << "a character of zero";
}

void TestProblems::hostileDefinitions()
{
    QFETCH(QString, pointer);
    QFETCH(QString, value);
    QFETCH(QString, message);
    json changed = definition();
    changed[json::json_pointer(pointer.toStdString())] = json::parse(value.toStdString());
    const auto read = parseDefinition(ordered(changed), "test.json");
    QVERIFY(!read);
    QVERIFY2(QString::fromStdString(read.error().message).contains(message), read.error().message.c_str());
    QVERIFY(read.error().message.size() < 1000);
    for (const char *key : {"name", "axes", "inputs", "outputs"}) {
        json without = definition();
        without.erase(key);
        QVERIFY(!parseDefinition(ordered(without), "test.json"));
    }
}

void TestProblems::hostileBindings_data()
{
    QTest::addColumn<QString>("line");
    QTest::newRow("no JSON") << "{";
    QTest::newRow("a list") << "[]";
    QTest::newRow("nothing") << "{}";
    QTest::newRow("deep") << QString(100'000, '[');
    QTest::newRow("axis as text") << R"({"axes": {"rows": "9"}, "inputs": {}})";
    QTest::newRow("huge axis") << R"({"axes": {"rows": 99999999999999999999999}, "inputs": {}})";
    QTest::newRow("scalar without value") << R"({"axes": {}, "inputs": {"eps": {"type": "scalar"}}})";
    QTest::newRow("scalar as text") << R"({"axes": {}, "inputs": {"eps": {"type": "scalar", "value": "x"}}})";
    QTest::newRow("workload as list") << R"({"definition": "a", "workload": []})";
}

void TestProblems::hostileBindings()
{
    QFETCH(QString, line);
    const auto read = parseBinding(line.toStdString(), "test:1");
    QVERIFY(!read);
    QVERIFY(QString::fromStdString(read.error().message).startsWith("test:1"));
}

void TestProblems::valuesMayBeGiven()
{
    const auto read = parseDefinition(ordered(definition()), "rownorm.json").value();
    QVERIFY(!draftOf(read, {}, {}));
    DraftOptions options;
    options.values = {{"rows", "31"}, {"eps", "0.25"}};
    const auto draft = draftOf(read, {}, options);
    // The name is that of an axis and of an input: the axis is meant.
    QVERIFY2(draft, draft ? "" : draft.error().message.c_str());
    QCOMPARE(draft->workload.cases.front().axes.at("rows_"), std::int64_t{31});
    QCOMPARE(draft->workload.python->arguments.back(), std::string("0.25"));
    for (const char *wrong : {"-1", "0", "x", "1e400", "{}"}) {
        options.values["rows"] = wrong;
        QVERIFY2(!draftOf(read, {}, options), wrong);
    }
    options.values = {{"rows", "31"}, {"eps", "import os"}};
    QVERIFY(!draftOf(read, {}, options));
}

void TestProblems::expressionAxes()
{
    json changed = definition();
    changed["axes"] = {{"rows", {{"type", "var"}}},
                       {"heads", {{"type", "const"}, {"value", 4}}},
                       {"width", {{"type", "const"}, {"value", 96}}},
                       {"hidden", {{"type", "expr"}, {"expression", "width // heads"}}}};
    const auto read = parseDefinition(ordered(changed), "test.json").value();
    const auto draft = draftOf(read, bindings({binding(5)}), {});
    QVERIFY2(draft, draft ? "" : draft.error().message.c_str());
    const workload::Workload &w = draft->workload;
    QCOMPARE(w.shapeOf(*w.findTensor("out"), w.cases.front()).value(), (std::vector<std::int64_t>{5, 24}));
}

void TestProblems::aFolderIsImported()
{
    const QTemporaryDir folder;
    const fs::path from = folder.filePath("set").toStdString();
    const fs::path workloads = folder.filePath("workloads").toStdString();
    write(from / "definitions/norm/rownorm.json", ordered(definition()));
    const json trace = {
        {"definition", "RowNorm d24"}, {"workload", json::parse(binding(12))}, {"solution", nullptr}};
    write(from / "workloads/norm/rownorm.jsonl", binding(40) + "\n" + trace.dump() + "\n{\"axes\": 3}\n");
    write(from / "workloads/norm/other.jsonl", binding(40) + "\n");
    json own = definition();
    own["name"] = "beside";
    own.erase("reference");
    write(from / "sol/definition.json", ordered(own));
    write(from / "sol/reference.py", reference);
    write(from / "sol/workload.jsonl", binding(6) + "\n");
    write(from / "solutions/fast.json", R"({"name": "fast", "sources": []})");
    write(from / "broken.json", "{");
    write(from / "helper.py", "print('no problem')\n");
    fs::create_symlink("/etc/passwd", from / "link.json");
    const auto entries = importProblems(from, workloads, {});
    QVERIFY2(entries, entries ? "" : entries.error().message.c_str());
    const ImportEntry *norm = entryOf(*entries, "definitions/norm/rownorm.json");
    QVERIFY(norm);
    QVERIFY2(norm->name == "rownorm-d24", norm->reason.c_str());
    QVERIFY(hasNote(norm->notes, "1 workload cannot be read"));
    const ImportEntry *beside = entryOf(*entries, "sol/definition.json");
    QVERIFY(beside && beside->name == "beside");
    QVERIFY(hasNote(beside->notes, "reference.py beside it"));
    for (const auto &[source, reason] :
         {std::pair{"solutions/fast.json", "It is a solution"}, std::pair{"broken.json", "It is no JSON"},
          std::pair{"helper.py", "no problem of KernelBench"}, std::pair{"link.json", "not followed"},
          std::pair{"workloads/norm/other.jsonl", "import that one"}}) {
        const ImportEntry *entry = entryOf(*entries, source);
        QVERIFY2(entry, source);
        QVERIFY2(entry->name.empty() && entry->reason.find(reason) != std::string::npos,
                 entry->reason.c_str());
    }
    QCOMPARE(entries->size(), std::size_t{7});
    const auto read = workload::readWorkload(workloads / "rownorm-d24");
    QVERIFY2(read, read ? "" : read.error().message.c_str());
    QCOMPARE(read->python->source, std::string(reference));
    QCOMPARE(read->python->declared, false);
    QCOMPARE(read->cases.front().axes.at("rows_"), std::int64_t{40});
    QVERIFY(read->findCase("hidden"));
    const auto again = importProblems(from / "definitions/norm/rownorm.json", workloads, {});
    QVERIFY(again && again->size() == 1 && again->front().isThere);
}

void TestProblems::whatTheReferenceDoesWrong_data()
{
    QTest::addColumn<QString>("source");
    QTest::addColumn<QString>("message");
    const QString run = "def run(rows, weight, eps):\n    ";
    QTest::newRow("no run") << "def walk():\n    pass\n"
                            << "it has no function run";
    QTest::newRow("another shape") << run + "return [[1.0]]\n"
                                   << "shape";
    QTest::newRow("zeros") << run + "return [[0.0] * 24 for _ in rows]\n"
                           << "zeros";
    QTest::newRow("a copy") << run + "return [list(map(float, row)) for row in rows]\n"
                            << "rows";
    QTest::newRow("raises") << run + "raise ValueError('no')\n"
                            << "ValueError: no";
    QTest::newRow("never the same") << "import random\n" + run
                                           + "return [[random.random() for _ in row] for row in rows]\n"
                                    << "not deterministic";
}

void TestProblems::whatTheReferenceDoesWrong()
{
    QFETCH(QString, source);
    QFETCH(QString, message);
    const QTemporaryDir folder;
    const fs::path from = folder.filePath("set").toStdString();
    json changed = definition();
    changed["reference"] = source.toStdString();
    write(from / "a.json", ordered(changed));
    write(from / "a.jsonl", binding(9) + "\n");
    const auto entries = importProblems(from, folder.filePath("workloads").toStdString(), {});
    QVERIFY(entries && entries->size() == 1);
    const ImportEntry &entry = entries->front();
    QVERIFY(entry.name.empty());
    QVERIFY2(QString::fromStdString(entry.reason).contains(message), entry.reason.c_str());
    QVERIFY(!fs::exists(folder.filePath("workloads/rownorm-d24").toStdString()));
}

void TestProblems::descriptionsOfKernelBench()
{
    const json tensor = {{"name", "x"}, {"dtype", "float32"}, {"shape", {8, 16}}, {"low", -3.0},
                         {"high", 3.0}, {"mean", 0.0},        {"deviation", 1.0}};
    json weight = tensor;
    weight["name"] = "linear.weight";
    weight["shape"] = {16, 16};
    weight["low"] = -0.25;
    weight["high"] = 0.25;
    weight["deviation"] = 0.14;
    json out = tensor;
    out["name"] = "out";
    const json said = {
        {"inputs", {tensor, {{"name", "alpha"}, {"value", 0.5}}}}, {"weights", {weight}}, {"outputs", {out}}};
    const auto draft = draftOfDescription("1_Linear", "def run(*a): pass\n", said.dump());
    QVERIFY2(draft, draft ? "" : draft.error().message.c_str());
    QCOMPARE(draft->workload.name, std::string("1_linear"));
    QCOMPARE(draft->workload.axes, (std::vector<std::string>{"D8", "D16"}));
    QCOMPARE(draft->workload.python->arguments, (std::vector<std::string>{"x", "0.5", "linear_weight"}));
    QCOMPARE(draft->workload.findTensor("linear_weight")->distribution.kind,
             workload::DistributionKind::Uniform);
    for (const char *pointer : {"/inputs", "/weights", "/outputs/0/dtype", "/outputs/0/shape",
                                "/inputs/0/shape", "/inputs/1/value"}) {
        for (const json &wrong :
             {json(), json("x"), json{1, {2}}, json(1e30), json(std::vector<int>(100, 7)), json{-1}}) {
            if (std::string(pointer) == "/inputs/1/value" && wrong.is_number())
                continue;
            json changed = said;
            changed[json::json_pointer(pointer)] = wrong;
            QVERIFY2(!draftOfDescription("a", "x", changed.dump()), (pointer + wrong.dump()).c_str());
        }
    }
    QVERIFY(!draftOfDescription("a", "x", "["));
    std::vector<std::string> notes;
    const std::string source = "size = 4096 * 4  # wide\nif size == 3:\n    size = 1\nsizes = 2\n";
    QCOMPARE(withValues(source, {{"size", "8"}, {"sizes", "import os"}}, notes),
             std::string("size = 8\nif size == 3:\n    size = 1\nsizes = 2\n"));
    QCOMPARE(notes.size(), std::size_t{1});
}

void TestProblems::aProblemOfKernelBench()
{
    const std::string problem =
        "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n"
        "    def __init__(self, width):\n        super().__init__()\n        self.linear = nn.Linear(width, 12)\n\n"
        "    def forward(self, x):\n        return torch.relu(self.linear(x)) + 1\n\n\n"
        "def get_inputs():\n    return [torch.randn(10, 32)]\n\n\ndef get_init_inputs():\n    return [32]\n";
    QVERIFY(looksLikeKernelBench(problem));
    const QTemporaryDir folder;
    const fs::path file = folder.filePath("7_LinearRelu.py").toStdString();
    write(file, problem);
    const fs::path workloads = folder.filePath("workloads").toStdString();
    const auto entries = importProblems(file, workloads, {});
    QVERIFY(entries && entries->size() == 1);
    if (entries->front().name.empty() && entries->front().reason.find("torch") != std::string::npos)
        QSKIP(("Without torch it is told: " + entries->front().reason).c_str());
    QVERIFY2(entries->front().name == "7_linearrelu", entries->front().reason.c_str());
    const auto read = workload::readWorkload(workloads / "7_linearrelu");
    QVERIFY2(read, read ? "" : read.error().message.c_str());
    QVERIFY(read->findTensor("linear_weight") && read->findTensor("linear_bias"));
    QCOMPARE(read->python->declared, false);
}

void TestProblems::arraysAreThoseThatAreImported()
{
    using workload::PythonArrays;
    const auto first = [](const char *source) { return arraysOf(source).front(); };
    QVERIFY(first("import torch.nn as nn\n") == PythonArrays::Torch);
    QVERIFY(first("def run(x):\n    from torch import nn\n    return x\n") == PythonArrays::Torch);
    QVERIFY(first("# not torch\nimport numpy as np  # nor torch\n\"\"\"torch\"\"\"") == PythonArrays::Numpy);
    QVERIFY(first("import numpy as np, torch") == PythonArrays::Torch);
    QCOMPARE(arraysOf("# torch or numpy\ndef run(x):\n    return x\n").size(), std::size_t{3});
    QCOMPARE(arraysOf("").size(), std::size_t{3});
}

void TestProblems::slugs()
{
    QCOMPARE(slugOf("GEMM N=4096, K"), std::string("gemm-n-4096-k"));
    QCOMPARE(slugOf("../../etc"), std::string("etc"));
    QCOMPARE(slugOf("\xc3\xa4"), std::string("problem"));
    QCOMPARE(slugOf(std::string(500, 'a')).size(), std::size_t{64});
}

QTEST_GUILESS_MAIN(TestProblems)
#include "tst_problems.moc"
