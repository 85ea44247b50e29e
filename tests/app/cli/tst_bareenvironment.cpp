// SPDX-License-Identifier: GPL-3.0-or-later
//
// klineage-cli where next to nothing is set, as cron, containers and other programs start it: what the environment breaks is never told
// as something that the candidate did.
#include "core/files/atomicfile.h"
#include "core/pool/gateclient.h"
#include "core/process/childprocess.h"
#include "tests/core/gate/gatefixture.h"
#include "tests/paths.h"

#include <QtTest>
#include <nlohmann/json.hpp>

using namespace klineage;
using nlohmann::json;

class TestBareEnvironment : public QObject
{
    Q_OBJECT
private slots:
    void initTestCase();
    void aCorrectKernelIsCorrect_data();
    void aCorrectKernelIsCorrect();
    void aBrokenCompilerMakesTheDeviceUnavailable();

private:
    /// Runs klineage-cli with these variables and no others.
    struct Outcome {
        int exitCode = -1;
        json answer;
        std::string errors;
    };
    [[nodiscard]] static Outcome run(const std::vector<std::pair<std::string, std::string>> &variables,
                                     const std::vector<std::string> &arguments);
    [[nodiscard]] std::vector<std::string> gateArguments() const;

    QTemporaryDir m_folder;
};

TestBareEnvironment::Outcome TestBareEnvironment::run(
    const std::vector<std::pair<std::string, std::string>> &variables,
    const std::vector<std::string> &arguments)
{
    process::ChildOptions options;
    options.command = {klineage::test::programPath("/klineage-cli")};
    options.command.insert(options.command.end(), arguments.begin(), arguments.end());
    options.inheritedVariables.emplace(); // none
    options.environment = variables;
    options.workingDirectory = "/";
    auto child = process::ChildProcess::start(options);
    if (!child)
        return {-1, {}, child.error().message};
    const auto status = child->wait(process::Deadline::in(400));
    if (!status)
        return {-1, {}, status.error().message};
    return {status->exitCode, json::parse(child->standardOutput().text, nullptr, false),
            child->standardError().text};
}

std::vector<std::string> TestBareEnvironment::gateArguments() const
{
    const std::string folder = m_folder.path().toStdString();
    return {"gate",
            "run",
            folder + "/test.cl",
            "--workspace",
            folder,
            "--workload",
            "tiny",
            "--json",
            "--timeout",
            "300",
            "--profile-seconds",
            "0.3",
            "--no-reference"};
}

void TestBareEnvironment::initTestCase()
{
    // Large enough that a busy machine's pauses between launches are small beside them.
    std::string timed = test::smallMatmul;
    const std::string small = "M = 64, N = 64, K = 64";
    timed.replace(timed.find(small), small.size(), "M = 256, N = 256, K = 256");
    QVERIFY(QDir(m_folder.path()).mkpath("workloads/tiny") && QDir(m_folder.path()).mkpath("skills"));
    QVERIFY(files::writeFileAtomic(m_folder.filePath("workloads/tiny/workload.toml").toStdString(), timed));
    QVERIFY(files::writeFileAtomic(m_folder.filePath("test.cl").toStdString(), test::naive()));
    const auto devices = gate::queryDevices(klineage::test::programPath("/klineage-gate"));
    QVERIFY2(devices, devices ? "" : devices.error().message.c_str());
    for (const gate::DeviceInfo &device : *devices) {
        if (device.kind == kernel::DeviceKind::OpenCl && !device.available)
            QSKIP(("No OpenCL device: " + device.detail).c_str());
        if (device.kind == kernel::DeviceKind::OpenCl && device.detail.rfind("pocl", 0) != 0)
            QSKIP("This is about PoCL and the tools that it starts.");
    }
}

void TestBareEnvironment::aCorrectKernelIsCorrect_data()
{
    using Variables = std::vector<std::pair<std::string, std::string>>;
    QTest::addColumn<Variables>("variables");
    QTest::newRow("env -i") << Variables{};
    QTest::newRow("a PATH without tools") << Variables{{"PATH", m_folder.path().toStdString()}};
    QTest::newRow("an empty PATH, no such HOME")
        << Variables{{"PATH", ""}, {"HOME", m_folder.filePath("none").toStdString()}};
}

void TestBareEnvironment::aCorrectKernelIsCorrect()
{
    using Variables = std::vector<std::pair<std::string, std::string>>;
    QFETCH(const Variables, variables);
    const Outcome outcome = run(variables, gateArguments());
    QVERIFY2(outcome.answer.contains("trial"), (outcome.answer.dump() + outcome.errors).c_str());
    const json &verdict = outcome.answer.at("trial").at("verdict");
    QVERIFY2(outcome.answer.at("status") == "correct", verdict.dump().c_str());
    QCOMPARE(outcome.exitCode, 0);
}

void TestBareEnvironment::aBrokenCompilerMakesTheDeviceUnavailable()
{
    const Outcome outcome = run({{"POCL_EXTRA_BUILD_FLAGS", "-no-such-option"}}, gateArguments());
    QVERIFY2(outcome.answer.contains("trial"), (outcome.answer.dump() + outcome.errors).c_str());
    const json &verdict = outcome.answer.at("trial").at("verdict");
    QVERIFY2(verdict.at("status") == "unavailable", verdict.dump().c_str());
    QCOMPARE(verdict.at("reason").get<std::string>(), std::string("no_device"));
    const auto message = verdict.at("message").get<std::string>();
    QVERIFY2(message.find("a small kernel of the gate's own fails") != std::string::npos, message.c_str());
    QVERIFY2(verdict.dump().find("-no-such-option") != std::string::npos, verdict.dump().c_str());
}

QTEST_GUILESS_MAIN(TestBareEnvironment)
#include "tst_bareenvironment.moc"
