// SPDX-License-Identifier: GPL-3.0-or-later
//
// A Python function as a workload: what its head says, and what it does not; and a workload as a Python function.
#include "core/gate/check/oracle.h"
#include "core/gate/oracle/pythonoracle.h"
#include "core/interop/problems/pythonfunction.h"
#include "core/interop/traceset/datasetdefinition.h"
#include "core/interop/traceset/operatortext.h"
#include "core/workspace/workspace.h"
#include "tests/paths.h"

#include <QtTest>
#include <nlohmann/json.hpp>

#include <cmath>
#include <set>

using namespace klineage;
using namespace klineage::interop;
using nlohmann::json;

class TestPythonFunction : public QObject
{
    Q_OBJECT
private slots:
    void tensorsAsTexts_data();
    void tensorsAsTexts();
    void aFunctionBecomesAWorkload();
    void whatTheHeadDoesNotSay_data();
    void whatTheHeadDoesNotSay();
    void aFunctionSaysItsHead();
    void referencesSayWhatOraclesDo_data();
    void referencesSayWhatOraclesDo();
    void oraclesInPython_data();
    void oraclesInPython();
};

void TestPythonFunction::tensorsAsTexts_data()
{
    QTest::addColumn<QString>("text");
    QTest::addColumn<QString>("read"); // "name dtype extent|extent"; "": refused
    QTest::newRow("plain") << "f32[R, C]"
                           << " f32 R|C";
    QTest::newRow("named") << "out: bf16[R,2 * C , 128]"
                           << "out bf16 R|2 * C|128";
    QTest::newRow("as an option") << "x=f8e4m3[N]"
                                  << "x f8e4m3 N";
    QTest::newRow("numpy's word") << " float32 [R] "
                                  << " f32 R";
    QTest::newRow("torch's word") << "torch.bfloat16[R]"
                                  << " bf16 R";
    for (const char *bad : {"", "f32", "f32[]", "f32[R", "f31[R]", "f32[R,,C]", "f32[R,]x", "1x=f32[R]",
                            "f32[a,b,c,d,e,f,g,h,i]", "[R]"})
        QTest::newRow(bad) << bad << "";
}

void TestPythonFunction::tensorsAsTexts()
{
    QFETCH(QString, text);
    QFETCH(QString, read);
    const auto tensor = parseTensorText(text.toStdString());
    if (read.isEmpty()) {
        QVERIFY(!tensor);
        QVERIFY2(tensor.error().message.ends_with("as in f32[R, C]."), tensor.error().message.c_str());
        return;
    }
    QVERIFY2(tensor, tensor ? "" : tensor.error().message.c_str());
    QStringList shape;
    for (const std::string &extent : tensor->shape)
        shape << QString::fromStdString(extent);
    QCOMPARE(QString::fromStdString(tensor->name + ' ' + tensor->dtype + ' ') + shape.join('|'), read);
}

namespace {

json parameter(const char *name, const json &annotation, const json &standard = json())
{
    return {{"name", name},
            {"annotation", annotation},
            {"has_default", !standard.is_null()},
            {"default", standard},
            {"is_list", false}};
}

} // namespace

void TestPythonFunction::aFunctionBecomesAWorkload()
{
    const json head{
        {"parameters",
         {parameter("x", "f32[R, C]"), parameter("w", "bf16[2 * C, 16]"), parameter("eps", json(), 1e-6)}},
        {"returns", {"f32[R, C]", "total: f32[R]"}},
        {"description", "What it does."}};
    FunctionOptions options;
    options.values = {{"R", "64"}, {"C", "32"}};
    options.flops = "3 * R * C";
    const auto draft = draftOfSignature("mine", "def run(x, w, eps): pass", head.dump(), options);
    QVERIFY2(draft, draft ? "" : draft.error().message.c_str());
    const workload::Workload &w = draft->workload;
    QCOMPARE(w.description, std::string("What it does."));
    QCOMPARE(w.axes, (std::vector<std::string>{"R", "C", "D16"}));
    QCOMPARE(w.tensors.size(), std::size_t{4});
    QCOMPARE(w.findTensor("w")->shape[0].text(), std::string("(2 * C)"));
    QCOMPARE(w.findTensor("y0")->role, workload::Role::Output);
    QVERIFY(w.findTensor("total"));
    QCOMPARE(w.flops.text(), std::string("3 * R * C"));
    QCOMPARE(w.python->arguments, (std::vector<std::string>{"x", "w", "1e-06"}));
    QCOMPARE(w.python->function, std::string("run"));
    QCOMPARE(w.cases.front().axes.at("R"), std::int64_t{64});
    QVERIFY(w.findCase("hidden") && w.findCase("spread"));
    options.inputs = {"x=f16[R, C]"}; // an option says it otherwise
    options.outputs = {"y=f16[R, C]"};
    options.values["eps"] = "0.5";
    const auto other = draftOfSignature("mine", "def run(x, w, eps): pass", head.dump(), options);
    QVERIFY2(other, other ? "" : other.error().message.c_str());
    QCOMPARE(other->workload.findTensor("x")->dtype, kernel::DType::F16);
    QCOMPARE(other->workload.tensors.size(), std::size_t{3});
    QCOMPARE(other->workload.python->arguments.back(), std::string("0.5"));
}

void TestPythonFunction::whatTheHeadDoesNotSay_data()
{
    QTest::addColumn<QString>("head");
    QTest::addColumn<QStringList>("options"); // "input …", "output …", "size …", "flops …"
    QTest::addColumn<QString>("why");
    const auto row = [](const char *name, const json &head, const QStringList &options, const char *why) {
        QTest::newRow(name) << QString::fromStdString(head.dump()) << options << why;
    };
    const json x = parameter("x", "f32[R, C]");
    const auto head = [](const json &parameters, const json &returns = "f32[R, C]") {
        return json{{"parameters", parameters}, {"returns", returns}, {"description", ""}};
    };
    row("no function", {{"functions", {"rum"}}}, {}, "did you mean 'rum'");
    row("no shape", head(json::array({parameter("x", json())})), {},
        "The parameter 'x' has neither a shape nor a number");
    row("a bad shape", head(json::array({parameter("x", "f32")})), {"size R=4"},
        "The parameter 'x': 'f32' is no tensor");
    row("no sizes", head(json::array({x})), {"size C=4"}, "Say how large R is where it is timed: --size R=");
    row("a size that is none", head(json::array({x})), {"size R=x", "size C=4"},
        "is no positive whole number");
    row("nothing returned", head(json::array({x}), json()), {"size R=4", "size C=4"},
        "Nothing says the shape of what it returns");
    row("something else returned", head(json::array({x}), {"f32[R]", 4}), {"size R=4", "size C=4"},
        "something else than a tensor's text");
    row("the same name twice", head(json::array({x}), "x: f32[R]"), {"size R=4", "size C=4"},
        "An input and an output are both called 'x'");
    row("an option for nothing", head(json::array({x})), {"input z=f32[R]", "size R=4", "size C=4"},
        "no parameter 'z'");
    row("an option without a name", head(json::array({x})), {"output f32[R]", "size R=4", "size C=4"},
        "has no name");
    row("flops of nothing", head(json::array({x})), {"size R=4", "size C=4", "flops Q"}, "Q");
    row("no JSON that it should be", json::array(), {}, "cannot be read");
    json list = parameter("xs", "f32[R]");
    list["is_list"] = true;
    row("any number of them", head(json::array({list})), {"size R=4"}, "not passed by its place");
}

void TestPythonFunction::whatTheHeadDoesNotSay()
{
    QFETCH(QString, head);
    QFETCH(QStringList, options);
    QFETCH(QString, why);
    FunctionOptions said;
    for (const QString &option : options) {
        const std::string value = option.section(' ', 1).toStdString();
        if (option.startsWith("input"))
            said.inputs.push_back(value);
        else if (option.startsWith("output"))
            said.outputs.push_back(value);
        else if (option.startsWith("flops"))
            said.flops = value;
        else
            said.values[value.substr(0, value.find('='))] = value.substr(value.find('=') + 1);
    }
    const auto draft = draftOfSignature("mine", "def run(x): pass", head.toStdString(), said);
    QVERIFY(!draft);
    QCOMPARE(draft.error().code, ErrorCode::InvalidInput);
    QVERIFY2(draft.error().message.find(why.toStdString()) != std::string::npos,
             draft.error().message.c_str());
}

void TestPythonFunction::aFunctionSaysItsHead()
{
    FunctionOptions options;
    options.values = {{"R", "8"}, {"C", "4"}};
    options.function = "scale";
    const std::string source = "def scale(x: 'f32[R, C]', by=2.0) -> 'f32[R, C]':\n"
                               "    \"\"\"Each value, times a number.\"\"\"\n"
                               "    return [[float(v) * by for v in row] for row in x]\n";
    const auto draft = draftOfFunction("scaled", source, options, {});
    if (!draft && draft.error().code == ErrorCode::Unavailable)
        QSKIP(draft.error().message.c_str());
    QVERIFY2(draft, draft ? "" : draft.error().message.c_str());
    QCOMPARE(draft->workload.description, std::string("Each value, times a number."));
    QCOMPARE(draft->workload.python->source, source);
    QCOMPARE(draft->workload.python->arguments, (std::vector<std::string>{"x", "2.0"}));
    options.function = "scales";
    const auto none = draftOfFunction("scaled", source, options, {});
    QVERIFY(!none && none.error().message.find("did you mean 'scale'") != std::string::npos);
    options.function = "a b";
    QVERIFY(!draftOfFunction("scaled", source, options, {}));
    options.function = "scale";
    const auto broken = draftOfFunction("scaled", "raise ValueError('no')\n" + source, options, {});
    QVERIFY(!broken);
    QVERIFY2(broken.error().code == ErrorCode::InvalidInput, broken.error().message.c_str());
}

static const Workspace &shipped()
{
    static const Result<Workspace> workspace = openWorkspace(test::sourcePath());
    return *workspace;
}

static double elementsOf(const workload::Workload &workload, const workload::Case &c)
{
    double elements = 0;
    for (const workload::Tensor &tensor : workload.tensors) {
        const std::vector<std::int64_t> shape = workload.shapeOf(tensor, c).value();
        double count = 1;
        for (const std::int64_t extent : shape)
            count *= static_cast<double>(extent);
        elements += count;
    }
    return elements;
}

static double relativeError(const std::vector<double> &have, const std::vector<double> &want)
{
    if (have.size() != want.size())
        return INFINITY;
    double error = 0;
    double size = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        error += (have[i] - want[i]) * (have[i] - want[i]);
        size += want[i] * want[i];
    }
    return error == 0 ? 0 : std::sqrt(error / size);
}

/// A workload by its name; rows operations that no shipped one has, by their oracle's.
static workload::Workload workloadOf(const std::string &name)
{
    if (const workload::Workload *there = shipped().findWorkload(name))
        return *there;
    workload::Workload workload = *shipped().findWorkload("silu");
    workload.name = "rows";
    workload.oracle = name;
    if (name == "sum_rows")
        workload.tensors.back().shape.pop_back();
    return workload;
}

void TestPythonFunction::referencesSayWhatOraclesDo_data()
{
    QTest::addColumn<QString>("name");
    std::set<std::string> oracles;
    for (const workload::Workload &workload : shipped().workloads) {
        const bool hasBias = workload.oracleArgs.contains("bias");
        if (workload.oracle == "python")
            continue; // the reference is the oracle
        if (oracles.insert(workload.oracle + (hasBias ? " bias" : "")).second)
            QTest::newRow(workload.name.c_str()) << QString::fromStdString(workload.name);
    }
    for (const char *oracle : {"sum_rows", "cumsum_rows", "sort_rows"})
        QTest::newRow(oracle) << oracle;
}

void TestPythonFunction::referencesSayWhatOraclesDo()
{
    QFETCH(QString, name);
    workload::Workload workload = workloadOf(name.toStdString());
    if (workload.oracle.starts_with("topk")) // a reference is written for one K; ties may be broken otherwise
        workload.cases = {*workload.findCase("odd")};
    const auto text = referenceText(workload);
    QVERIFY2(text, text ? "" : text.error().message.c_str());

    workload::Workload inPython = workload;
    inPython.python.emplace();
    inPython.python->source = *text;
    inPython.python->arrays = workload::PythonArrays::Torch;
    inPython.python->declared = true;
    gate::PythonOracles oracles;
    int compared = 0;
    for (const workload::Case &c : workload.cases) {
        if (!c.drawn.empty() || elementsOf(workload, c) > 2e6)
            continue;
        const auto tensors = gate::generateCase(workload, c, 7);
        QVERIFY(tensors);
        const auto expected = gate::computeOracle(workload, *tensors);
        QVERIFY2(expected, expected ? "" : expected.error().message.c_str());
        const auto said = oracles.compute(inPython, *tensors);
        if (!said && said.error().code == ErrorCode::Unavailable)
            QSKIP(said.error().message.c_str());
        QVERIFY2(said, said ? "" : (said.error().message + '\n' + said.error().detail).c_str());
        for (const workload::Tensor &tensor : workload.tensors) {
            if (tensor.role != workload::Role::Output)
                continue;
            // run() rounds to the output's type.
            const double limit = workload::classTolerance(tensor.dtype).relL2 + 1e-12;
            const double error = relativeError(said->at(tensor.name), expected->at(tensor.name));
            QVERIFY2(error <= limit, (c.name + ", " + tensor.name + ": " + std::to_string(error)).c_str());
        }
        ++compared;
    }
    QVERIFY(compared > 0);
}

void TestPythonFunction::oraclesInPython_data()
{
    QTest::addColumn<int>("arrays");
    QTest::addColumn<QString>("source");
    QTest::addColumn<bool>("isVerbatim");
    const QString lists = "def double(x, by):\n    return [[v * by for v in row] for row in x]\n";
    QTest::newRow("lists") << static_cast<int>(workload::PythonArrays::Lists) << lists << false;
    QTest::newRow("numpy")
        << static_cast<int>(workload::PythonArrays::Numpy)
        << "import numpy\n\n\ndef double(x, by):\n    return {\"y\": numpy.multiply(x, by)}\n"
        << false;
    QTest::newRow("torch") << static_cast<int>(workload::PythonArrays::Torch)
                           << "def run(x):\n    return (x * 2,)\n"
                           << true;
}

void TestPythonFunction::oraclesInPython()
{
    QFETCH(int, arrays);
    QFETCH(QString, source);
    QFETCH(bool, isVerbatim);
    workload::Workload workload = *shipped().findWorkload("silu");
    workload.oracle = "python";
    workload::PythonOracle &oracle = workload.python.emplace();
    oracle.source = source.toStdString();
    oracle.arrays = static_cast<workload::PythonArrays>(arrays);
    if (!isVerbatim) {
        oracle.function = "double";
        oracle.arguments = {"x", "2"};
    }
    const DatasetDefinition made = datasetDefinitionOf(workload).value();
    QCOMPARE(made.opType, workload.name);
    const std::string text = made.json["reference"].get<std::string>();
    QCOMPARE(text == oracle.source, isVerbatim);
    QVERIFY(text.starts_with(oracle.source));
    QVERIFY(text.find("\ndef run(x):\n") != std::string::npos || isVerbatim);

    workload::Case c = workload.cases.front();
    c.axes = {{"R", 5}, {"C", 7}};
    const auto tensors = gate::generateCase(workload, c, 7);
    QVERIFY(tensors);
    oracle = {};
    oracle.source = text;
    oracle.arrays = workload::PythonArrays::Torch;
    oracle.declared = true;
    gate::PythonOracles oracles;
    const auto said = oracles.compute(workload, *tensors);
    if (!said
        && (said.error().code == ErrorCode::Unavailable
            || said.error().message.find("numpy") != std::string::npos))
        QSKIP(said.error().message.c_str());
    QVERIFY2(said, said ? "" : said.error().message.c_str());
    const gate::HostTensor &x = tensors->front();
    for (std::size_t i = 0; i < x.elements(); ++i)
        QCOMPARE(said->at("y")[i], 2 * kernel::loadElement(x.bytes.data(), x.dtype, i));
}

QTEST_GUILESS_MAIN(TestPythonFunction)
#include "tst_pythonfunction.moc"
