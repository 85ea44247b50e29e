// SPDX-License-Identifier: GPL-3.0-or-later
// A thousand runs (fewer under the sanitizers) against a server that goes wrong in every way it can, killed between any two writes. The server keeps its own books, so
// that what the ledger says can be held against what was really served.
#include "core/files/atomicfile.h"
#include "core/llm/author.h"
#include "core/llm/network/httpprovider.h"
#include "tests/core/llm/loopbackserver.h"
#include "tests/core/llm/scriptedprovider.h"
#include "tests/paths.h"

#include <QTemporaryDir>
#include <QTest>

#include <map>
#include <mutex>
#include <random>

using namespace klineage;
using namespace klineage::llm;

namespace {

namespace fs = std::filesystem;

const int sessions = klineage::test::isSanitized() ? 300 : 1000;
constexpr std::uint64_t seed = 20261121;
constexpr double idleSeconds = 0.08;

std::string answerTo(const std::string &prompt)
{
    return "the answer to " + prompt;
}

std::size_t below(std::mt19937_64 &random, std::size_t limit)
{
    return static_cast<std::size_t>(random() % limit);
}

enum class Fault { None, Status, NoAnswer, Drop, Stall, BadJson, ErrorEvent, WrongUsage };

/// The server's side: what goes wrong is drawn for each request, and what was served is charged.
class Bookkeeper
{
public:
    explicit Bookkeeper(std::uint64_t randomSeed)
        : m_random(randomSeed)
    {}

    ServerAnswer answer(const SeenRequest &request)
    {
        const std::scoped_lock lock(m_mutex);
        const std::string prompt = request.lastMessage();
        const std::string text = answerTo(prompt);
        const Usage used{static_cast<std::int64_t>(prompt.size() / 3 + 10), 0, 0,
                         static_cast<std::int64_t>(text.size() / 3 + 1)};
        const Fault fault = draw();
        ++m_faults[static_cast<int>(fault)];
        ServerAnswer answer;
        answer.body = request.isAnthropic() ? anthropicStream(text, used) : openAiStream(text, used);
        answer.pieceBytes = below(m_random, 3) == 0 ? 1 + below(m_random, 40) : 0;
        if (fault == Fault::Status)
            return refused();
        // From here on the server has worked, and wants its money.
        m_chargedMicro += microDollars(dollars(testPrices().prices[0], used));
        ++m_served[prompt];
        const std::size_t within = below(m_random, answer.body.size() - 40);
        if (fault == Fault::NoAnswer)
            answer.status = 0;
        if (fault == Fault::Drop)
            answer.dropAfter = within;
        if (fault == Fault::Stall)
            answer.stallAfter = within;
        if (fault == Fault::BadJson)
            answer.body.insert(answer.body.find("data: {") + 7, "]");
        if (fault == Fault::ErrorEvent)
            answer.body.insert(
                0, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
                   "\"message\":\"Overloaded\"}}\n\n");
        if (fault == Fault::WrongUsage)
            falsify(answer.body);
        return answer;
    }

    std::int64_t chargedMicro() const
    {
        const std::scoped_lock lock(m_mutex);
        return m_chargedMicro;
    }
    int served(const std::string &prompt) const
    {
        const std::scoped_lock lock(m_mutex);
        const auto found = m_served.find(prompt);
        return found == m_served.end() ? 0 : found->second;
    }
    int faults(Fault fault) { return m_faults[static_cast<int>(fault)]; }

private:
    Fault draw()
    {
        const std::size_t chance = below(m_random, 200);
        if (chance < 120)
            return Fault::None;
        if (chance < 150)
            return Fault::Status;
        if (chance < 160)
            return Fault::NoAnswer;
        if (chance < 170)
            return Fault::Drop;
        if (chance < 171)
            return Fault::Stall;
        if (chance < 180)
            return Fault::BadJson;
        if (chance < 190)
            return Fault::ErrorEvent;
        return Fault::WrongUsage;
    }

    ServerAnswer refused()
    {
        static constexpr std::array statuses{429, 500, 529, 503};
        static constexpr std::array waits{"", "0", "3600", "Sun, 06 Nov 2094 08:49:37 GMT"};
        ServerAnswer answer;
        answer.status = statuses[below(m_random, statuses.size())];
        answer.body = "{\"error\":{\"type\":\"overloaded_error\",\"message\":\"later\"}}";
        if (const std::string wait = waits[below(m_random, waits.size())]; !wait.empty())
            answer.headers.push_back({"Retry-After", wait});
        return answer;
    }

    /// The last count of output tokens becomes none, nothing, or far too many.
    void falsify(std::string &body)
    {
        static constexpr std::array wrong{"-7", "0", "1e99", "null", "987654321", "\"many\""};
        for (const char *key : {"\"completion_tokens\":", "\"output_tokens\":"}) {
            const std::size_t at = body.rfind(key);
            if (at == std::string::npos)
                continue;
            const std::size_t begin = at + std::string_view(key).size();
            body.replace(begin, body.find_first_not_of("0123456789", begin) - begin,
                         wrong[below(m_random, wrong.size())]);
        }
    }

    mutable std::mutex m_mutex;
    std::mt19937_64 m_random;
    std::int64_t m_chargedMicro = 0;
    std::map<std::string, int> m_served;
    std::map<int, int> m_faults;
};

/// Takes the last line off a file, or leaves a part of it: what a kill during or before its writing leaves.
void undoLastLine(const fs::path &file, std::mt19937_64 &random)
{
    std::string text = files::readFile(file, 1 << 24).value_or(std::string());
    const std::size_t begin = text.size() < 2 ? 0 : text.rfind('\n', text.size() - 2) + 1;
    const std::size_t lineBytes = text.size() - begin;
    text.resize(begin + (below(random, 2) == 0 || lineBytes < 2 ? 0 : below(random, lineBytes - 1)));
    (void)files::writeFileAtomic(file, text);
}

/// One run: questions asked in order, with kills, until all are answered or the budget is spent.
class Session
{
public:
    Session(fs::path folder, Bookkeeper &books, HttpProvider &provider, std::mt19937_64 &random,
            std::string name)
        : m_folder(std::move(folder))
        , m_books(books)
        , m_provider(provider)
        , m_random(random)
        , m_name(std::move(name))
    {}

    /// Empty when everything held.
    std::string run()
    {
        const std::int64_t chargedBefore = m_books.chargedMicro();
        const double most = mostDollars(testPrices().prices[0], request(0));
        m_cap = most * static_cast<double>(2 + below(m_random, 12));
        const std::size_t count = 1 + below(m_random, 4);
        std::optional<Author> author;
        std::size_t next = 0;
        for (int round = 0; round < 60 && next < count; ++round) {
            if (!author) { // a new process: from the beginning, answered from the record
                Result<Author> opened = Author::open(m_folder, m_provider, testPrices(), m_cap);
                if (!opened)
                    return "cannot open: " + opened.error().message;
                author.emplace(std::move(*opened));
                author->setRetries(2, 0);
                next = 0;
            }
            const bool replayed = author->isReplaying();
            const int servedBefore = m_books.served(prompt(next));
            const Result<Exchange> exchange = author->ask(request(next));
            if (std::string wrong = checkLedger(author->ledger(), chargedBefore); !wrong.empty())
                return wrong;
            if (!exchange && exchange.error().code == ErrorCode::Budget)
                break;
            if (!exchange)
                continue;
            if (exchange->reply.text != answerTo(prompt(next)))
                return "a wrong reply: " + exchange->reply.text;
            if (replayed && m_books.served(prompt(next)) != servedBefore)
                return "what the record answers was asked again";
            ++next;
            if (below(m_random, 3) == 0) {
                author.reset();
                if (!replayed)
                    kill();
            }
        }
        return checkRecord(chargedBefore);
    }

private:
    std::string prompt(std::size_t number) const { return m_name + "-" + std::to_string(number); }
    Request request(std::size_t number) const
    {
        Request made = question(prompt(number));
        made.maxOutputTokens = 200;
        return made;
    }

    /// The order of writing is reserve, transcript, settle: the later ones are lost first.
    void kill()
    {
        const std::size_t lost = below(m_random, 3);
        if (lost >= 1)
            undoLastLine(m_folder / "ledger.jsonl", m_random);
        if (lost >= 2)
            undoLastLine(m_folder / "transcript.jsonl", m_random);
    }

    std::string checkLedger(const Ledger &ledger, std::int64_t chargedBefore) const
    {
        const std::int64_t counted =
            microDollars(ledger.spentDollars()) + microDollars(ledger.reservedDollars());
        const std::int64_t charged = m_books.chargedMicro() - chargedBefore;
        if (charged > counted)
            return "the ledger has " + std::to_string(counted) + ", the server charged "
                   + std::to_string(charged);
        if (counted > microDollars(m_cap) || charged > microDollars(m_cap))
            return "the cap was passed";
        return {};
    }

    /// A last opening: every exchange once and in order, each reservation paid once.
    std::string checkRecord(std::int64_t chargedBefore)
    {
        const Result<Author> author = Author::open(m_folder, m_provider, testPrices(), m_cap);
        if (!author)
            return "cannot open again: " + author.error().message;
        if (std::string wrong = checkLedger(author->ledger(), chargedBefore); !wrong.empty())
            return wrong;
        const Result<std::vector<Exchange>> exchanges = readTranscript(m_folder / "transcript.jsonl");
        std::map<std::string, int> paid;
        std::int64_t sum = 0;
        for (std::size_t i = 0; exchanges && i < exchanges->size(); ++i) {
            const Exchange &exchange = (*exchanges)[i];
            if (exchange.reply.text != answerTo(prompt(i)))
                return "a step was lost or is there twice";
            if (++paid[exchange.reservation] > 1)
                return "a reservation paid for two exchanges";
            if (author->ledger().isOpen(exchange.reservation))
                return "an exchange was not settled";
            sum += microDollars(exchange.dollars);
        }
        if (sum > microDollars(author->ledger().spentDollars()))
            return "the ledger has less than the transcript";
        m_answered = exchanges ? static_cast<int>(exchanges->size()) : 0;
        return {};
    }

public:
    int m_answered = 0;

private:
    fs::path m_folder;
    Bookkeeper &m_books;
    HttpProvider &m_provider;
    std::mt19937_64 &m_random;
    std::string m_name;
    double m_cap = 0;
};

} // namespace

class TestSessions : public QObject
{
    Q_OBJECT

private slots:
    void nothingIsLostOrPaidTwice()
    {
        qInfo("random seed %llu", static_cast<unsigned long long>(seed));
        std::mt19937_64 random(seed);
        Bookkeeper books(seed + 1);
        LoopbackServer server([&](const SeenRequest &request) { return books.answer(request); });
        // Everything is flushed to the disk many times over: in memory where there is a folder for that.
        const QString shared = QFile::exists("/dev/shm") ? "/dev/shm/klineage-XXXXXX" : QString();
        QTemporaryDir folder(shared.isEmpty() ? QDir::tempPath() + "/klineage-XXXXXX" : shared);
        int answered = 0;
        for (int i = 0; i < sessions; ++i) {
            NetworkOptions options;
            const bool anthropic = random() % 2 == 0;
            options.baseUrl = server.url() + (anthropic ? "" : "/v1");
            options.paid = true;
            options.retry = {4, 0.0002, 0.001, 10};
            options.limits.idleSeconds = idleSeconds;
            options.seed = random();
            auto provider =
                HttpProvider::create(anthropic ? makeAnthropicDialect() : makeOpenAiDialect(false), options);
            const fs::path root = fs::path(folder.path().toStdString()) / std::to_string(i);
            fs::create_directories(root);
            Session session(root, books, **provider, random, "session-" + std::to_string(i));
            const std::string wrong = session.run();
            QVERIFY2(wrong.empty(), ("session " + std::to_string(i) + ": " + wrong).c_str());
            answered += session.m_answered;
        }
        qInfo("%d replies, server charged %lld micro-dollars", answered,
              static_cast<long long>(books.chargedMicro()));
        QVERIFY(answered > sessions);
        for (const Fault fault : {Fault::Status, Fault::NoAnswer, Fault::Drop, Fault::Stall, Fault::BadJson,
                                  Fault::ErrorEvent, Fault::WrongUsage})
            QVERIFY2(books.faults(fault) > sessions / 300, "a fault was hardly ever drawn");
    }
};

QTEST_GUILESS_MAIN(TestSessions)
#include "tst_sessions.moc"
