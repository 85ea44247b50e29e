// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/diff/diffloader.h"

#include <algorithm>
#include <future>
#include <mutex>

namespace klineage::ui {

namespace {

constexpr std::size_t mostDocuments = 24;
constexpr std::size_t mostSides = 48;
constexpr std::size_t mostBytes = 64u << 20; // of texts that nobody looks at
constexpr std::uintmax_t longBytes = 1u << 20;

bool isLong(const DiffSpec &spec)
{
    std::error_code unknown;
    const auto bytes = spec.left ? std::filesystem::file_size(spec.left->file, unknown) : 0;
    return !unknown && bytes >= longBytes;
}

} // namespace

/// Texts by key, so that a text which two documents show is read and highlighted once. Thread-safe.
class DiffLoader::SideCache
{
public:
    SideTextPtr get(const SideSpec &spec, const std::stop_token &stop)
    {
        const QString key = spec.key();
        {
            const std::lock_guard lock(m_mutex);
            const auto found = std::find_if(m_sides.begin(), m_sides.end(),
                                            [&](const auto &side) { return side.first == key; });
            if (found != m_sides.end()) {
                m_sides.splice(m_sides.begin(), m_sides, found);
                return found->second;
            }
        }
        SideTextPtr side = readSide(spec, stop);
        if (stop.stop_requested())
            return side; // its highlighting may be incomplete
        const std::lock_guard lock(m_mutex);
        m_sides.emplace_front(key, side);
        std::size_t bytes = 0;
        for (const auto &[name, text] : m_sides)
            bytes += text->text.bytes().size();
        while (m_sides.size() > 1 && (m_sides.size() > mostSides || bytes > mostBytes)) {
            bytes -= m_sides.back().second->text.bytes().size();
            m_sides.pop_back();
        }
        return side;
    }

private:
    std::mutex m_mutex;
    std::list<std::pair<QString, SideTextPtr>> m_sides; ///< most recently used first
};

DiffLoader::DiffLoader(QObject *parent)
    : QObject(parent)
    , m_sides(std::make_shared<SideCache>())
{}

DiffLoader::~DiffLoader() = default;

DocumentPtr DiffLoader::make(const DiffSpec &spec, SideCache &cache, const std::stop_token &stop)
{
    // Long texts take as long to read as to compare. Of short ones the highlighting takes longest, for which each thread has to prepare.
    auto reading = std::async(isLong(spec) ? std::launch::async : std::launch::deferred,
                              [&] { return spec.left ? cache.get(*spec.left, stop) : nullptr; });
    SideTextPtr right = cache.get(spec.right, stop);
    SideTextPtr left = reading.get();
    if (stop.stop_requested())
        return nullptr;
    return makeDocument(std::move(left), std::move(right), spec.options, stop);
}

DocumentPtr DiffLoader::load(const DiffSpec &spec)
{
    const QString key = spec.key();
    m_loading.cancel();
    const auto found = m_documents.constFind(key);
    if (found != m_documents.cend()) {
        const DocumentPtr document = *found;
        remember(key, document);
        return document;
    }
    m_loading.start(interactivePool(), [this, spec, key, cache = m_sides](const std::stop_token &stop,
                                                                          const JobSlot::Post &post) {
        DocumentPtr document = make(spec, *cache, stop);
        if (!document)
            return;
        post([this, key, document = std::move(document)] {
            remember(key, document);
            emit loaded(key, document);
        });
    });
    return nullptr;
}

void DiffLoader::prefetch(const std::vector<DiffSpec> &specs)
{
    std::vector<std::pair<QString, DiffSpec>> missing;
    for (const DiffSpec &spec : specs) {
        const QString key = spec.key();
        if (!m_documents.contains(key))
            missing.emplace_back(key, spec);
    }
    if (missing.empty()) {
        m_prefetching.cancel();
        return;
    }
    m_prefetching.start(backgroundPool(), [this, missing, cache = m_sides](const std::stop_token &stop,
                                                                           const JobSlot::Post &post) {
        for (const auto &[key, spec] : missing) {
            DocumentPtr document = make(spec, *cache, stop);
            if (!document)
                return;
            post([this, key = key, document = std::move(document)] { remember(key, document); });
        }
    });
}

void DiffLoader::cancel()
{
    m_loading.cancel();
    m_prefetching.cancel();
}

void DiffLoader::remember(const QString &key, const DocumentPtr &document)
{
    m_order.remove(key);
    m_order.push_front(key);
    m_documents.insert(key, document);
    while (m_order.size() > mostDocuments) {
        m_documents.remove(m_order.back());
        m_order.pop_back();
    }
}

} // namespace klineage::ui
