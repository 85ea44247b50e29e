// SPDX-License-Identifier: GPL-3.0-or-later
// A table of what goes wrong with the servers of models, each against the provider and the author as a run has them. What must come of
// each: a text or an error, how many requests, what is charged; the key is nowhere, and nothing waits for ever.
#include "core/files/atomicfile.h"
#include "core/files/jsonlines.h"
#include "core/llm/author.h"
#include "core/llm/network/httpprovider.h"
#include "tests/core/llm/modelfaults.h"
#include "tests/core/llm/scriptedprovider.h"
#include "tests/patience.h"

#include <QDir>
#include <QFileInfo>
#include <QTemporaryDir>
#include <QTest>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>

using namespace klineage;
using namespace klineage::llm;

namespace {

namespace fs = std::filesystem;

const std::vector<ModelFault> &table()
{
    static const std::vector<ModelFault> rows = [] {
        FaultTable made;
        addFaultsOfAnswers(made);
        addFaultsOfConnections(made);
        addFaultsOfStreams(made);
        addFaultsOfReplies(made);
        return made.rows;
    }();
    return rows;
}

/// A port of this machine that is taken, and at which nobody listens.
class DeafPort
{
public:
    DeafPort()
        : m_socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))
    {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        ::bind(m_socket, reinterpret_cast<sockaddr *>(&address), size);
        ::getsockname(m_socket, reinterpret_cast<sockaddr *>(&address), &size);
        m_port = ntohs(address.sin_port);
    }
    ~DeafPort() { ::close(m_socket); }
    DeafPort(const DeafPort &) = delete;
    DeafPort &operator=(const DeafPort &) = delete;
    std::string url() const { return "http://127.0.0.1:" + std::to_string(m_port); }

private:
    int m_socket = -1;
    int m_port = 0;
};

/// Stops what has not ended within patience, so that it fails as what it is.
class Watchdog
{
public:
    explicit Watchdog(std::stop_source &stop)
        : m_thread([this, &stop](const std::stop_token &ended) {
            std::unique_lock lock(m_mutex);
            m_wake.wait_for(lock, ended, std::chrono::milliseconds(patienceMs), [] { return false; });
            if (ended.stop_requested())
                return;
            m_bit = true;
            stop.request_stop();
        })
    {}
    ~Watchdog() = default;
    Watchdog(const Watchdog &) = delete;
    Watchdog &operator=(const Watchdog &) = delete;
    bool hadToBite()
    {
        const std::scoped_lock lock(m_mutex);
        return m_bit;
    }

private:
    std::mutex m_mutex;
    std::condition_variable_any m_wake;
    bool m_bit = false;
    std::jthread m_thread; // the last: it works on the others
};

/// One row: the server, the provider and the author, and all that was said.
class Trial
{
public:
    Trial(const ModelFault &fault, const fs::path &folder)
        : m_fault(fault)
        , m_folder(folder)
        , m_server([this](const SeenRequest &) { return answer(); })
    {}

    void run()
    {
        NetworkOptions options;
        options.baseUrl =
            (m_fault.when.nobodyListens ? m_deaf.url() : m_server.url()) + (m_fault.anthropic ? "" : "/v1");
        options.key = [](std::string_view) { return faults::key; };
        options.paid = true;
        options.retry = {3, 0.001, 0.002, 10 * patienceSeconds};
        options.limits.connectSeconds = patienceSeconds;
        options.limits.idleSeconds = m_fault.when.idleSeconds.value_or(2 * patienceSeconds);
        options.limits.totalSeconds = m_fault.when.totalSeconds.value_or(2 * patienceSeconds);
        options.limits.maxBodyBytes = std::size_t{8} << 20;
        options.notice = [this](const std::string &text) {
            notices.push_back(text);
            if (m_fault.when.stop == Circumstances::Stop::WhenAskedAgain)
                m_stop.request_stop();
        };
        auto dialect = m_fault.anthropic ? makeAnthropicDialect() : makeOpenAiDialect(false);
        const auto provider = HttpProvider::create(std::move(dialect), options);
        QVERIFY(provider);
        Result<Author> author = Author::open(m_folder, **provider, testPrices(), 1);
        QVERIFY(author);
        author->setRetries(2, 0);
        author->setNotice(options.notice);
        Watchdog watchdog(m_stop);
        exchange = author->ask(question("why?"), m_stop.get_token(),
                               [this](std::string_view text) { streamed += text; });
        QVERIFY2(!watchdog.hadToBite(), "it hangs");
    }

    int requests()
    {
        const std::scoped_lock lock(m_mutex);
        return m_requests;
    }

    /// Everything that a person sees or that is written down.
    std::string allThatWasSaid() const
    {
        std::string all = streamed;
        for (const std::string &notice : notices)
            all += '\n' + notice;
        if (exchange)
            all += exchange->reply.text + '\n' + exchange->reply.model + '\n' + exchange->reply.requestId;
        else
            all += exchange.error().message + '\n' + exchange.error().detail;
        for (const auto &entry : fs::recursive_directory_iterator(m_folder))
            all += '\n' + files::readFile(entry.path(), std::size_t{64} << 20).value_or("unreadable");
        return all;
    }

    Result<Exchange> exchange;
    std::string streamed;
    std::vector<std::string> notices;

private:
    ServerAnswer answer()
    {
        const std::scoped_lock lock(m_mutex);
        if (m_fault.when.stop == Circumstances::Stop::WhenSeen)
            m_stop.request_stop();
        return m_requests++ < m_fault.when.times ? m_fault.answer
                                                 : faults::answered(faults::sound(m_fault.anthropic));
    }

    const ModelFault &m_fault;
    fs::path m_folder;
    std::stop_source m_stop;
    std::mutex m_mutex;
    int m_requests = 0;
    DeafPort m_deaf;
    LoopbackServer m_server; // the last: its thread works on the others
};

bool contains(const std::string &text, const std::string &part)
{
    return text.find(part) != std::string::npos;
}

} // namespace

class TestModelFaults : public QObject
{
    Q_OBJECT

private:
    // Everything is flushed to the disk many times over: in memory where there is a folder for that.
    QTemporaryDir m_folder{(QFileInfo("/dev/shm").isWritable() ? QString("/dev/shm") : QDir::tempPath())
                           + "/klineage-XXXXXX"};

private slots:
    void initTestCase()
    {
        QVERIFY2(m_folder.isValid(), qPrintable(m_folder.errorString()));
        std::set<std::string> names;
        for (const ModelFault &fault : table())
            QVERIFY2(names.insert(fault.name).second, fault.name.c_str());
        QVERIFY(names.size() >= 400);
    }

    void faults_data()
    {
        QTest::addColumn<int>("row");
        for (std::size_t i = 0; i < table().size(); ++i)
            QTest::newRow(table()[i].name.c_str()) << static_cast<int>(i);
    }
    void faults()
    {
        QFETCH(int, row);
        const ModelFault &fault = table().at(static_cast<std::size_t>(row));
        const Due &due = fault.due;
        const fs::path folder = fs::path(m_folder.path().toStdString()) / std::to_string(row);
        QVERIFY(fs::create_directory(folder));
        Trial trial(fault, folder);
        trial.run();
        if (QTest::currentTestFailed())
            return;
        const Result<Exchange> &exchange = trial.exchange;
        const std::string said = exchange ? std::string() : exchange.error().message;
        if (due.text) {
            QVERIFY2(exchange, said.c_str());
            QCOMPARE(exchange->reply.text, *due.text);
            QVERIFY2(trial.streamed.ends_with(*due.text), trial.streamed.c_str());
            QCOMPARE(exchange->reply.stop, due.stop);
            QCOMPARE(exchange->reply.usageKnown, due.counted != Usage());
            QVERIFY(due.says.empty() || contains(trial.notices.at(trial.notices.size() - 1), due.says));
        } else {
            QVERIFY2(!exchange, exchange ? exchange->reply.text.c_str() : "");
            QVERIFY2(exchange.error().code == due.code, said.c_str());
            QVERIFY2(contains(said, due.says), said.c_str());
            QVERIFY2(said.ends_with('.'), said.c_str());
            QVERIFY2(said == validUtf8(said) && !contains(said, std::string(1, '\0'))
                         && !contains(said, "\x1b"),
                     said.c_str());
        }
        QTRY_COMPARE(trial.requests(), due.requests); // a server that was late counts what it has been sent
        checkCharges(folder, due);
        const std::string all = trial.allThatWasSaid();
        QVERIFY(!contains(all, faults::key.substr(0, 12)));
        QVERIFY(!contains(all, "unreadable"));
    }

private:
    /// What is written in the ledger, read anew.
    static void checkCharges(const fs::path &folder, const Due &due)
    {
        const auto ledger = Ledger::open(folder / "ledger.jsonl", 1);
        QVERIFY(ledger);
        const Price price = testPrices().prices.front();
        QCOMPARE(ledger->reservedDollars(), 0.0);
        QCOMPARE(microDollars(ledger->spentDollars()),
                 due.inFull * microDollars(mostDollars(price, question("why?")))
                     + microDollars(dollars(price, due.counted)));
        QCOMPARE(ledger->usage(), due.counted);
        const auto lines = files::readLines(folder / "transcript.jsonl");
        QCOMPARE(lines ? lines->lines.size() : 0, due.text ? 1 : 0);
    }
};

QTEST_GUILESS_MAIN(TestModelFaults)
#include "tst_modelfaults.moc"
