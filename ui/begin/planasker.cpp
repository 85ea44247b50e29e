// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/begin/planasker.h"

#include "core/llm/author.h"
#include "core/llm/makeprovider.h"
#include "core/llm/modelsettings.h"
#include "core/run/drive/runprovider.h"
#include "core/run/drive/start.h"
#include "ui/keys/keyring.h"
#include "ui/style/format.h"

namespace klineage::ui {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t likelyPlanTokens = 900; ///< a plan, a few sentences and some thought

QString askerSentence(const Error &error)
{
    return QString::fromStdString(error.detail.empty() ? error.message : error.message + "\n" + error.detail);
}

Status makeFolder(const fs::path &folder)
{
    std::error_code problem;
    fs::create_directories(folder, problem);
    if (problem)
        return fail(ErrorCode::Io, "Cannot create '" + folder.string() + "': " + problem.message() + '.');
    return {};
}

/// What a person's models.toml says of the model goes along, as with every question of a run.
Status complete(run::Settings &settings, llm::Request &request)
{
    request.model = settings.model;
    if (llm::needsModel(settings.provider)) {
        const Result<llm::OwnModels> own = llm::loadModels();
        if (!own)
            return tl::unexpected(own.error());
        llm::addModelSettings(*own, settings.model, settings.author);
    }
    return llm::applyAuthorKeys(settings.author, request);
}

} // namespace

PlanAsker::PlanAsker(QObject *parent)
    : QObject(parent)
{}

PlanAsker::~PlanAsker()
{
    m_stop.request_stop(); // the thread, a member, is joined after that
}

void PlanAsker::setKeys(KeyRing *keys)
{
    m_keys = keys;
}

Result<QuestionCost> PlanAsker::costOf(const run::Settings &settings, const llm::Request &request,
                                       const fs::path &workspace)
{
    QuestionCost cost;
    cost.isPaid = run::isPaid(settings);
    if (!cost.isPaid)
        return cost;
    const Result<llm::PriceTable> prices = llm::loadPrices(workspace);
    if (!prices)
        return tl::unexpected(prices.error());
    const llm::Price *price = prices->find(settings.model);
    if (!price)
        return tl::unexpected(llm::unknownPrice(*prices, settings.model));
    cost.likely = llm::likelyDollars(*price, request, likelyPlanTokens);
    cost.most = llm::mostDollars(*price, request);
    cost.priceDate = QString::fromStdString(prices->date);
    return cost;
}

QString PlanAsker::ask(const run::Settings &settings, const llm::Request &request, const fs::path &workspace,
                       const fs::path &folder)
{
    if (m_isAsking)
        return tr("A question is waiting for its answer; stop it first.");
    if (const Status made = makeFolder(folder); !made)
        return askerSentence(made.error());
    m_isAsking = true;
    m_stop = std::stop_source();
    const quint64 number = ++m_number;
    const auto post = [this, number](std::function<void()> act) {
        QMetaObject::invokeMethod(this, [this, number, act = std::move(act)] {
            if (m_isAsking && m_number == number)
                act();
        });
    };
    const llm::KeyCallback key = m_keys ? m_keys->callback(settings, m_stop.get_token()) : llm::KeyCallback();
    m_thread = std::jthread([this, settings = settings, request = request, workspace, folder, key, post,
                             stop = m_stop.get_token()]() mutable {
        Answer answer;
        const llm::NoticeCallback notice = [this, post](const std::string &text) {
            post([this, text = QString::fromStdString(text)] { emit progressed(text); });
        };
        const auto converse = [&]() -> Status {
            if (Status completed = complete(settings, request); !completed)
                return completed;
            const Result<llm::PriceTable> prices = llm::loadPrices(workspace);
            if (!prices)
                return tl::unexpected(prices.error());
            const auto provider = run::makeRunProvider(settings, workspace, folder, {}, key, notice);
            if (!provider)
                return tl::unexpected(provider.error());
            Result<llm::Author> author = llm::Author::open(folder, **provider, *prices, settings.capDollars);
            if (!author)
                return tl::unexpected(author.error());
            author->setNotice(notice);
            qint64 characters = 0;
            const Result<llm::Exchange> exchange =
                author->ask(request, stop, [this, post, &characters](std::string_view piece) {
                    characters += static_cast<qint64>(piece.size());
                    post([this, characters] {
                        emit progressed(tr("the author writes: %1 characters").arg(formatCount(characters)));
                    });
                });
            // What a stop left open may have been charged.
            answer.dollars = author->ledger().spentDollars() + author->ledger().reservedDollars();
            if (!exchange)
                return tl::unexpected(exchange.error());
            answer.reply = exchange->reply.text;
            return {};
        };
        if (const Status asked = converse(); !asked)
            answer.problem = askerSentence(asked.error());
        post([this, answer] { finish(answer); });
    });
    emit progressed(
        settings.provider == "manual"
            ? tr("waiting for the reply in %1").arg(QString::fromStdString((folder / "manual").string()))
            : tr("asking"));
    return {};
}

void PlanAsker::stop()
{
    m_stop.request_stop();
}

void PlanAsker::finish(const Answer &answer)
{
    m_thread.join();
    m_isAsking = false;
    if (answer.reply)
        emit answered(QString::fromStdString(*answer.reply), answer.dollars);
    else
        emit failed(answer.problem, answer.dollars);
}

} // namespace klineage::ui
