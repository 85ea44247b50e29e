// SPDX-License-Identifier: GPL-3.0-or-later
//
// klineage-gate as other programs see it: serve through GateClient, devices, batch; and what a kill leaves behind.
#include "core/files/jsonlines.h"
#include "core/pool/gateclient.h"
#include "core/process/childprocess.h"

#include "tests/core/gate/gatefixture.h"
#include "tests/paths.h"
#include "tests/patience.h"

#include <nlohmann/json.hpp>

#include <QTemporaryDir>
#include <QtTest>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <thread>

using namespace klineage;
using namespace klineage::gate;
namespace fs = std::filesystem;

namespace {

const fs::path program = fs::path(klineage::test::programPath()) / "klineage-gate";

void writeText(const fs::path &path, const std::string &text)
{
    std::ofstream(path) << text;
}

/// Children of a process, and theirs.
std::vector<pid_t> descendants(pid_t root)
{
    std::vector<pid_t> found;
    std::error_code ignored;
    for (const auto &task : fs::directory_iterator("/proc/" + std::to_string(root) + "/task", ignored)) {
        std::ifstream children(task.path() / "children");
        for (pid_t child = 0; children >> child;) {
            found.push_back(child);
            const auto below = descendants(child);
            found.insert(found.end(), below.begin(), below.end());
        }
    }
    return found;
}

bool runs(pid_t pid)
{
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(stat, text);
    const auto paren = text.rfind(')');
    return paren != std::string::npos && paren + 2 < text.size() && text[paren + 2] != 'Z';
}

} // namespace

class TestGateClient : public QObject
{
    Q_OBJECT
private slots:
    void initTestCase();
    void runsACandidate();
    void cancelKillsTheTrial();
    void survivesTheDeathOfTheGate();
    void launcherPrefix();
    void missingProgram();
    void programThatIsNoGate();
    void findsTheProgram();
    void helpNamesEveryMode();
    void serveAnswersBadLines();
    void batchIsResumable();
    void batchRefusesBadFiles();
    void killsLoseAtMostTheTrialInFlight();

private:
    GateRequest request(const std::string &candidate) const;
    process::ChildOptions batch(const fs::path &in, const fs::path &out) const;
    fs::path path(const char *name) const { return fs::path(m_folder.path().toStdString()) / name; }
    QTemporaryDir m_folder;
};

void TestGateClient::initTestCase()
{
    const auto devices = queryDevices(program);
    QVERIFY2(devices, devices ? "" : devices.error().message.c_str());
    QCOMPARE(devices->size(), std::size_t{2});
    for (const DeviceInfo &device : *devices) {
        QVERIFY(!device.detail.empty());
        if (device.kind == kernel::DeviceKind::OpenCl && !device.available)
            QSKIP(("No OpenCL device: " + device.detail).c_str());
    }
    fs::create_directories(path("tiny"));
    writeText(path("tiny") / "workload.toml", test::smallMatmul);
    writeText(path("good.cl"), test::naive());
    writeText(path("bad.cl"), test::naive("c[row * N + col] = 2 * sum;"));
}

GateRequest TestGateClient::request(const std::string &candidate) const
{
    GateRequest request = test::quickJob(candidate).request;
    request.workloadDirectory = path("tiny");
    request.withReference = false;
    return request;
}

void TestGateClient::runsACandidate()
{
    GateClient client(program);
    int reports = 0;
    for (int i = 0; i < 2; ++i) {
        const auto trial = client.run(request(test::naive()), {}, [&](const GateProgress &) { ++reports; });
        QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
        QVERIFY2(trial->verdict.status == VerdictStatus::Correct, trial->verdict.message.c_str());
        QCOMPARE(trial->workload, std::string("tiny"));
    }
    QVERIFY(reports > 5);
    const auto wrong = client.run(request(test::naive("c[row * N + col] = 2 * sum;")));
    QVERIFY(wrong);
    QCOMPARE(wrong->verdict.status, VerdictStatus::Wrong);
    GateRequest missing = request(test::naive());
    missing.workloadDirectory = "/proc/nowhere";
    QVERIFY(!client.run(missing));
}

void TestGateClient::cancelKillsTheTrial()
{
    GateClient client(program);
    QVERIFY(client.run(request(test::naive())));
    const auto before = descendants(::getpid());
    QVERIFY(before.size() >= 2);
    std::stop_source stop;
    std::thread stopper;
    const auto trial = client.run(request(test::naive(";", "volatile int go = 1; while (go) { }")),
                                  stop.get_token(), [&](const GateProgress &progress) {
                                      // Before it the trial may wait for its turn on the device, and have no worker to lose.
                                      if (progress.stage != Stage::Correctness || stopper.joinable())
                                          return;
                                      stopper = std::thread([&] {
                                          std::this_thread::sleep_for(std::chrono::milliseconds(500));
                                          stop.request_stop();
                                      });
                                  });
    stopper.join();
    QVERIFY(!trial);
    QCOMPARE(trial.error().code, ErrorCode::Cancelled);
    // The gate itself stays warm; the worker that ran the candidate is gone.
    QVERIFY(runs(before.front()));
    QTRY_VERIFY_WITH_TIMEOUT(
        std::any_of(before.begin() + 1, before.end(), [](pid_t pid) { return !runs(pid); }), patienceMs);
    const auto next = client.run(request(test::naive()));
    QVERIFY2(next, next ? "" : next.error().message.c_str());
    QCOMPARE(client.run(request(test::naive()), stop.get_token()).error().code, ErrorCode::Cancelled);
}

void TestGateClient::survivesTheDeathOfTheGate()
{
    GateClient client(program);
    QVERIFY(client.run(request(test::naive())));
    std::thread killer([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        const auto children = descendants(::getpid());
        if (!children.empty())
            ::kill(children.front(), SIGKILL);
    });
    const auto trial = client.run(request(test::naive(";", "volatile int go = 1; while (go) { }")));
    killer.join();
    QVERIFY(!trial);
    QCOMPARE(trial.error().code, ErrorCode::Protocol);
    QVERIFY(trial.error().message.find("SIGKILL") != std::string::npos);
    const auto next = client.run(request(test::naive()));
    QVERIFY2(next, next ? "" : next.error().message.c_str());
}

void TestGateClient::launcherPrefix()
{
    GateClient client(program, {"env", "KLINEAGE_LAUNCHED=1"});
    const auto trial = client.run(request(test::naive()));
    QVERIFY2(trial, trial ? "" : trial.error().message.c_str());
    QCOMPARE(trial->verdict.status, VerdictStatus::Correct);
}

void TestGateClient::missingProgram()
{
    GateClient client("/proc/nowhere/klineage-gate");
    const auto trial = client.run(request(test::naive()));
    QVERIFY(!trial);
    QCOMPARE(trial.error().code, ErrorCode::NotFound);
    QVERIFY(!queryDevices("/proc/nowhere/klineage-gate"));
}

void TestGateClient::programThatIsNoGate()
{
    GateClient ends("/bin/true");
    QCOMPARE(ends.run(request(test::naive())).error().code, ErrorCode::Protocol);
    GateClient echoes("/bin/echo");
    QCOMPARE(echoes.run(request(test::naive())).error().code, ErrorCode::Protocol);
}

void TestGateClient::findsTheProgram()
{
    const auto found = findGateProgram();
    QVERIFY2(found, found ? "" : found.error().message.c_str());
    QCOMPARE(fs::canonical(*found), fs::canonical(program));
}

void TestGateClient::helpNamesEveryMode()
{
    const auto help = [&](std::vector<std::string> arguments) {
        process::ChildOptions options;
        options.command = {program.string()};
        options.command.insert(options.command.end(), arguments.begin(), arguments.end());
        auto child = process::ChildProcess::start(options);
        return child && child->wait(process::Deadline::in(patienceSeconds)) ? child->standardOutput().text
                                                                            : std::string();
    };
    const std::string all = help({"--help"});
    for (const char *mode : {"serve", "batch", "devices"})
        QVERIFY2(all.find(mode) != std::string::npos, mode);
    QVERIFY(all.find("started by the gate itself") == std::string::npos); // the hidden ones
    const std::string ofBatch = help({"batch", "--help"});
    for (const char *word : {"--out", "--limit-seconds", "--seed-pool", "\"candidate\"", "resumes"})
        QVERIFY2(ofBatch.find(word) != std::string::npos, word);
    QVERIFY(help({"serve", "--help"}).find("cancel") != std::string::npos);
}

void TestGateClient::serveAnswersBadLines()
{
    process::ChildOptions options;
    options.command = {program.string(), "serve"};
    options.openStdin = true;
    auto child = process::ChildProcess::start(options);
    QVERIFY(child);
    const std::string lines =
        "no json\n{\"id\":1}\n{\"id\":2,\"method\":\"dance\"}\n{\"id\":3,\"method\":\"gate\",\"params\":{}}\n"
        "{\"id\":4,\"method\":\"ping\"}\n{\"id\":5,\"method\":\"cancel\",\"target\":99}\n";
    QCOMPARE(::write(child->stdinFd(), lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
    QTRY_VERIFY_WITH_TIMEOUT(
        (child->drain(),
         std::count(child->standardOutput().text.begin(), child->standardOutput().text.end(), '\n') == 7),
        patienceMs);
    child->closeStdin();
    const auto status = child->wait(process::Deadline::in(patienceSeconds));
    QVERIFY(status && status->ok());
    const std::string &text = child->standardOutput().text;
    QVERIFY(text.find("\"hello\"") != std::string::npos);
    QVERIFY(text.find("dance") != std::string::npos);
    QVERIFY(text.find("\"pong\":true") != std::string::npos);
    QVERIFY(text.find("\"cancelled\":false") != std::string::npos);
    QCOMPARE(QString::fromStdString(text).count("\"error\""), 2 * 4);
}

process::ChildOptions TestGateClient::batch(const fs::path &in, const fs::path &out) const
{
    process::ChildOptions options;
    options.command = {program.string(),    "batch", in.string(), "--out", out.string(),
                       "--profile-seconds", "0.05"};
    options.workingDirectory = m_folder.path().toStdString();
    return options;
}

void TestGateClient::batchIsResumable()
{
    writeText(path("in.jsonl"), R"({"id":"a","workload":"tiny","candidate":"good.cl","with_reference":false}
{"id":"b","workload":"tiny","candidate":"bad.cl","parent":"good.cl"}
{"id":"c","workload":"tiny","candidate":"missing.cl"}
)");
    const fs::path out = path("resumed.jsonl");
    auto child = process::ChildProcess::start(batch(path("in.jsonl"), out));
    QVERIFY(child);
    auto status = child->wait(process::Deadline::in(6 * patienceSeconds));
    QVERIFY(status);
    QCOMPARE(status->exitCode, 3); // c has no file
    auto lines = files::readLines(out);
    QVERIFY(lines);
    QCOMPARE(lines->lines.size(), std::size_t{3});
    const auto second = nlohmann::json::parse(lines->lines[1].text);
    QCOMPARE(second.at("id").get<std::string>(), std::string("b"));
    QCOMPARE(second.at("trial").get<Trial>().verdict.status, VerdictStatus::Wrong);
    QVERIFY(nlohmann::json::parse(lines->lines[2].text).contains("error"));

    std::ofstream(out, std::ios::app) << "{\"id\":\"c\",\"trial\":{\"torn";
    writeText(path("missing.cl"), test::naive());
    child = process::ChildProcess::start(batch(path("in.jsonl"), out));
    QVERIFY(child);
    status = child->wait(process::Deadline::in(6 * patienceSeconds));
    QVERIFY(status && status->ok());
    QVERIFY(child->standardError().text.find("1 done, 2 skipped") != std::string::npos);
    lines = files::readLines(out);
    QVERIFY(lines && !lines->tornTail);
    QCOMPARE(lines->lines.size(), std::size_t{4});
    fs::remove(path("missing.cl"));
}

void TestGateClient::batchRefusesBadFiles()
{
    const auto run = [&](const std::string &text, const std::string &outText = {}) {
        writeText(path("refused.jsonl"), text);
        const fs::path out = path("refused-out.jsonl");
        fs::remove(out);
        if (!outText.empty())
            writeText(out, outText);
        auto child = process::ChildProcess::start(batch(path("refused.jsonl"), out));
        const auto status = child->wait(process::Deadline::in(patienceSeconds));
        return status && status->exitCode == 2 ? child->standardError().text : std::string("accepted");
    };
    QVERIFY(run("{\"id\":\"a\",\"workload\":\"tiny\"}\n").find(":1:") != std::string::npos);
    QVERIFY(run("{\"id\":\"a\",\"workload\":\"tiny\",\"candidate\":\"good.cl\",\"sedes\":3}\n").find("seeds")
            != std::string::npos);
    const std::string item = "{\"id\":\"a\",\"workload\":\"tiny\",\"candidate\":\"good.cl\"}\n";
    QVERIFY(run(item + item).find("twice") != std::string::npos);
    QVERIFY(run(item, "{\"something\":\"else\"}\n").find("is no line of a batch") != std::string::npos);
}

void TestGateClient::killsLoseAtMostTheTrialInFlight()
{
    std::string items;
    constexpr int count = 400;
    for (int i = 0; i < count; ++i)
        items += "{\"id\":\"" + std::to_string(i) + "\",\"workload\":\"tiny\",\"candidate\":\""
                 + (i % 3 == 2 ? "bad.cl" : "good.cl") + "\",\"with_reference\":false,\"min_rounds\":1}\n";
    writeText(path("kill.jsonl"), items);
    const fs::path out = path("kill-out.jsonl");
    std::mt19937 random(std::random_device{}());
    std::size_t finished = 0;
    QElapsedTimer timer;
    timer.start();
    // How long the first trial takes here and now, so that the kills fall around the ends of trials on slow and fast machines; not where it
    // waits for the turns of other gates.
    constexpr unsigned longestMs = 5000;
    unsigned firstTrialMs = 0;
    {
        auto child = process::ChildProcess::start(batch(path("kill.jsonl"), out));
        QVERIFY(child);
        // It waits for its turn beside corpora.
        QTRY_VERIFY_WITH_TIMEOUT(fs::exists(out) && fs::file_size(out) > 0, 6 * patienceMs);
        firstTrialMs = std::clamp(static_cast<unsigned>(timer.restart()), 1u, longestMs);
    }
    int kills = 0;
    int workerKills = 0;
    for (; kills < 30 && (kills < 6 || timer.elapsed() < 25'000); ++kills) {
        auto child = process::ChildProcess::start(batch(path("kill.jsonl"), out));
        QVERIFY(child);
        std::this_thread::sleep_for(std::chrono::milliseconds(random() % (2 * firstTrialMs)));
        const auto workers = descendants(child->pid());
        if (kills % 2 == 1 && !workers.empty()) {
            // The worker dies under the supervisor: a verdict, and the batch goes on until it is killed too.
            ::kill(workers.front(), SIGKILL);
            ++workerKills;
            std::this_thread::sleep_for(std::chrono::milliseconds(random() % 300));
        }
        child->kill();
        for (const pid_t pid : workers)
            QTRY_VERIFY_WITH_TIMEOUT(!runs(pid), patienceMs);
        const auto lines = files::readLines(out);
        if (!lines) {
            QCOMPARE(lines.error().code, ErrorCode::NotFound);
            continue;
        }
        // Nothing that was written is lost or damaged: every line but a torn last one is a whole trial, and no id comes twice.
        QVERIFY(lines->lines.size() >= finished);
        finished = lines->lines.size();
        std::set<std::string> ids;
        for (const files::Line &line : lines->lines) {
            const auto entry = nlohmann::json::parse(line.text);
            if (entry.contains(
                    "error")) // the worker was killed before it saw the candidate; the id is tried again
                continue;
            QVERIFY(ids.insert(entry.at("id").get<std::string>()).second);
            const Verdict verdict = entry.at("trial").get<Trial>().verdict;
            QVERIFY2(verdict.status == VerdictStatus::Correct || verdict.status == VerdictStatus::Wrong
                         || verdict.status == VerdictStatus::Crash,
                     line.text.substr(0, 2000).c_str());
        }
    }
    qInfo("%d kills, %d of them of workers first, %zu trials kept", kills, workerKills, finished);
    QVERIFY(finished > 0);
}

QTEST_GUILESS_MAIN(TestGateClient)
#include "tst_gateclient.moc"
