// SPDX-License-Identifier: GPL-3.0-or-later
// Runs a fuzz target without a fuzzing engine: the shipped files and the target's seeds, then a fixed number
// of mutations of them from a fixed random seed, so that a failure repeats. KLINEAGE_FUZZ_RUNS sets another
// number of mutations, KLINEAGE_FUZZ_SEED another random seed. A crash leaves the input in <program>.crash.
#include "tests/fuzz/seeds.h"

#include <QTest>

#include <algorithm>
#include <csignal>
#include <random>

#include <fcntl.h>
#include <unistd.h>

namespace {

std::string g_input; // what the target is reading
std::string g_crashFile;

void saveInput(int signalNumber)
{
    const int file = ::open(g_crashFile.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file >= 0 && ::write(file, g_input.data(), g_input.size()) >= 0)
        ::close(file);
    std::signal(signalNumber, SIG_DFL);
    std::raise(signalNumber);
}

void feed(std::string input)
{
    g_input = std::move(input);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t *>(g_input.data()), g_input.size());
}

class Mutator
{
public:
    Mutator(const std::vector<std::string> &seeds, const std::vector<std::string> &words,
            std::uint64_t randomSeed)
        : m_seeds(seeds)
        , m_words(words)
        , m_random(randomSeed)
    {}

    std::string next()
    {
        std::string text = m_seeds[below(m_seeds.size())];
        for (std::size_t step = 1 + below(6); step > 0; --step)
            mutate(text);
        if (text.size() > longestFuzzInput)
            text.resize(longestFuzzInput);
        return text;
    }

private:
    std::size_t below(std::size_t limit) { return limit == 0 ? 0 : m_random() % limit; }

    void mutate(std::string &text)
    {
        const std::size_t at = below(text.size() + 1);
        const std::size_t length = std::min(text.size() - at, below(1 + below(64)));
        switch (below(9)) {
        case 0:
            if (at < text.size())
                text[at] = static_cast<char>(m_random());
            break;
        case 1:
            text.insert(at, 1, static_cast<char>(32 + below(96)));
            break;
        case 2:
            text.erase(at, length);
            break;
        case 3:
            text.insert(at, text.substr(at, length));
            break;
        case 4:
            text.insert(below(text.size() + 1), text.substr(at, length));
            break;
        case 5:
            text.insert(at, m_words[below(m_words.size())]);
            break;
        case 6:
            text.replace(at, length, m_words[below(m_words.size())]);
            break;
        case 7:
            changeNumber(text, at);
            break;
        default:
            splice(text, at);
            break;
        }
    }

    void changeNumber(std::string &text, std::size_t from)
    {
        static const std::vector<std::string> numbers = {
            "0",     "-1",  "1",   "2147483648", "9223372036854775807", "-9223372036854775808",
            "1e308", "0.5", "nan", "inf"};
        const std::size_t begin = text.find_first_of("0123456789", from);
        if (begin == std::string::npos)
            return;
        const std::size_t end = text.find_first_not_of("0123456789", begin);
        text.replace(begin, end == std::string::npos ? end : end - begin, numbers[below(numbers.size())]);
    }

    void splice(std::string &text, std::size_t at)
    {
        const std::string &other = m_seeds[below(m_seeds.size())];
        text = text.substr(0, at) + other.substr(below(other.size() + 1));
    }

    const std::vector<std::string> &m_seeds;
    const std::vector<std::string> &m_words;
    std::mt19937_64 m_random;
};

} // namespace

class TestFuzz : public QObject
{
    Q_OBJECT

private slots:
    void initTestCase()
    {
        g_crashFile = QCoreApplication::applicationFilePath().toStdString() + ".crash";
        for (const int number : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS})
            std::signal(number, saveInput);
        m_seeds = collectSeeds(m_target);
    }

    void seedsAreHandled()
    {
        QVERIFY(!m_seeds.empty());
        for (const std::string &seed : m_seeds) {
            feed(seed);
            for (std::size_t cut = 0; cut < seed.size(); cut += 1 + seed.size() / 50)
                feed(seed.substr(0, cut));
        }
    }

    void mutationsAreHandled()
    {
        bool given = false;
        const int wanted = qEnvironmentVariableIntValue("KLINEAGE_FUZZ_RUNS", &given);
        const int runs = given ? wanted : m_target.runs;
        Mutator mutator(m_seeds, m_target.words,
                        1 + static_cast<std::uint64_t>(qEnvironmentVariableIntValue("KLINEAGE_FUZZ_SEED")));
        for (int run = 0; run < runs; ++run)
            feed(mutator.next());
        QVERIFY(runs > 0);
    }

private:
    FuzzTarget m_target = fuzzTarget();
    std::vector<std::string> m_seeds;
};

QTEST_GUILESS_MAIN(TestFuzz)
#include "driver.moc"
