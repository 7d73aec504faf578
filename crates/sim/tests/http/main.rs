//! The shell over real sockets.

mod look_ups;
mod mastodon_py;
mod pages;
mod quirks;
mod raw;
mod streams;
mod tweepy;
mod twitter;
mod x;
