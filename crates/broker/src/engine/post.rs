//! Answers on their way to their callers, many at a time.
//!
//! To wake a task from another thread costs the planning thread a lock for each, and often a call of
//! the system; for the callers of a whole batch that is as much as planning them. So a batch of
//! answers is handed over at once, to a [`Postman`] who lives where the callers live and wakes them
//! from there. Where there is none, or it has too much to do, everybody is told directly.

use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::Answer;
use super::handle::Teller;

/// The most batches that wait to be carried out. Each holds the places of its callers.
const BATCHES_MAX: usize = 64;
/// So few are told sooner directly.
const FEW: usize = 2;

type Answers = Vec<(Teller, Answer)>;

/// The way to the callers; a direct one, unless there is a postman.
#[derive(Clone, Debug, Default)]
pub struct Post {
    postman: Option<Sender<Answers>>,
}

/// Brings answers to tasks of the runtime it runs on.
#[derive(Debug)]
pub struct Postman(Receiver<Answers>);

impl Post {
    /// With a postman, who has to be run.
    pub fn new() -> (Self, Postman) {
        let (postman, answers) = channel(BATCHES_MAX);
        (Self { postman: Some(postman) }, Postman(answers))
    }

    /// Tells them all, and leaves `answers` empty.
    pub(super) fn tell(&self, answers: &mut Answers) {
        let postman = self.postman.as_ref().filter(|_| answers.len() > FEW);
        // A place first: what cannot be sent would have to be taken back.
        match postman.map(Sender::try_reserve) {
            Some(Ok(place)) => place.send(std::mem::take(answers)),
            Some(Err(_)) | None => tell(answers.drain(..)),
        }
    }
}

impl Postman {
    /// Brings what comes, until the engine has ended.
    pub async fn run(mut self) {
        while let Some(answers) = self.0.recv().await {
            tell(answers);
        }
    }
}

/// What was handed over is told, also when the postman is not run any more.
impl Drop for Postman {
    fn drop(&mut self) {
        self.0.close();
        while let Ok(answers) = self.0.try_recv() {
            tell(answers);
        }
    }
}

/// Tells each of them, from where we are.
pub(super) fn tell(answers: impl IntoIterator<Item = (Teller, Answer)>) {
    for (teller, answer) in answers {
        teller.tell(answer);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::oneshot;

    use super::super::Failure;
    use super::*;

    type Heard = oneshot::Receiver<Answer>;

    fn batch(size: usize) -> (Answers, Vec<Heard>) {
        let taken = Arc::new(AtomicUsize::new(0));
        let callers = (0..size).map(|_| Teller::new(&taken, size).unwrap());
        callers.map(|(teller, heard)| ((teller, Err(Failure::Overloaded)), heard)).unzip()
    }

    fn all_heard(heard: &mut [Heard]) -> bool {
        heard.iter_mut().all(|heard| heard.try_recv() == Ok(Err(Failure::Overloaded)))
    }

    #[test]
    fn a_few_are_told_directly_and_many_by_the_postman() {
        let (post, postman) = Post::new();
        let ((mut few, mut few_heard), (mut many, mut many_heard)) = (batch(FEW), batch(FEW + 1));
        post.tell(&mut few);
        assert!(few.is_empty() && all_heard(&mut few_heard));
        post.tell(&mut many);
        assert!(many.is_empty() && many_heard.iter_mut().all(|heard| heard.try_recv().is_err()));
        drop(post);
        // It ends with the engine.
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(postman.run());
        assert!(all_heard(&mut many_heard));
    }

    #[test]
    fn nobody_waits_for_a_postman_who_does_not_come() {
        let (post, postman) = Post::new();
        let mut waiting = Vec::new();
        for _ in 0..BATCHES_MAX {
            let (mut answers, heard) = batch(FEW + 1);
            post.tell(&mut answers);
            waiting.push(heard);
        }
        let (mut one_more, mut heard) = batch(FEW + 1);
        post.tell(&mut one_more);
        assert!(all_heard(&mut heard), "there is no place with the postman");
        drop(postman);
        assert!(waiting.iter_mut().all(|heard| all_heard(heard)), "what it had is told");
        let (mut after, mut heard) = batch(FEW + 1);
        post.tell(&mut after);
        assert!(all_heard(&mut heard), "it is gone");
    }
}
